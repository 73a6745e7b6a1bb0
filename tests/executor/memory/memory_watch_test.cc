// The limit of a rank on the CPU. Each test runs in a process of its own: the allocator that counts
// stays for the process's life.
#include "executor/memory/memory_watch.h"

#include <gtest/gtest.h>
#include "executor/tensor/torch.h"

#include <cstdlib>
#include <new>
#include <optional>

#include "cost_models/documents/out_of_memory.h"
#include "executor/storage/releasable_memory.h"
#include "executor/storage/shared_block.h"

namespace tessera {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

torch::Tensor tensor_of(std::int64_t bytes) { return torch::empty({bytes}, torch::kUInt8); }

/// The account of what `make` throws.
template <class Make>
std::optional<MemoryRefusal> refusal_in(const MemoryWatch& watch, Make make) {
  try {
    make();
  } catch (const std::exception& error) {
    return watch.refusal_of(error);
  }
  return std::nullopt;
}

void count_and_refuse() {
  const MemoryWatch watch(-1, {.limit_bytes = 16 * kMiB});
  const torch::Tensor a = tensor_of(4 * kMiB), b = tensor_of(4 * kMiB), c = tensor_of(2 * kMiB);
  { const torch::Tensor gone = tensor_of(6 * kMiB); }
  const auto block = make_host_block(3 * kMiB);
  EXPECT_FALSE(refusal_in(watch, [] { tensor_of(3 * kMiB); }));
  // What is alive when torch refuses is told, although it is gone when the error is caught.
  const auto refusal = refusal_in(watch, [] {
    const torch::Tensor transient = tensor_of(2 * kMiB);
    tensor_of(5 * kMiB);
  });
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->asked_by, "torch");
  EXPECT_EQ(refusal->requested, 5 * kMiB);
  EXPECT_EQ(refusal->limit, 16 * kMiB);
  EXPECT_EQ(refusal->in_use, (MemoryInUse{.tensors = 12 * kMiB, .arenas = 3 * kMiB}));
  EXPECT_EQ(refusal->largest, (std::vector<LiveTensors>{{4 * kMiB, 2}, {2 * kMiB, 2}}));
  EXPECT_EQ(watch.refusal("x", 0).in_use.tensors, 10 * kMiB);
}

void arenas_count() {
  const MemoryWatch watch(-1, {.limit_bytes = 8 * kMiB});
  const auto block = make_host_block(3 * kMiB);
  const auto rollout = make_releasable_host_memory(4 * kMiB);
  watch.hold_limit();
  EXPECT_TRUE(refusal_in(watch, [] { tensor_of(2 * kMiB); }));
  rollout->release();
  EXPECT_FALSE(refusal_in(watch, [] { tensor_of(2 * kMiB); }));
  rollout->map();
  const auto more = make_host_block(2 * kMiB);
  const auto refusal = refusal_in(watch, [&] { watch.hold_limit(); });
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->asked_by, "arenas");
  EXPECT_EQ(refusal->in_use.arenas, 9 * kMiB);
}

void other_errors() {
  const MemoryWatch watch(-1, {});
  EXPECT_TRUE(watch.refusal_of(OutOfMemory("NCCL", 0, "NCCL: out of memory")));
  EXPECT_TRUE(watch.refusal_of(std::bad_alloc()));
  EXPECT_FALSE(watch.refusal_of(Error(ExitCode::io, "disk full")));
  EXPECT_FALSE(refusal_in(watch, [] { (void)torch::ones({2}).view({3}); }));
  EXPECT_GT(watch.refusal("x", 0).in_use.libraries, kMiB);  // all that is resident
}

void allocator_settings() {
  EXPECT_NO_THROW(
      MemoryWatch(-1, {.allocator = "expandable_segments:True,garbage_collection_threshold:0.8"}));
  try {
    const MemoryWatch watch(-1, {.allocator = "expandable_segment:True"});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
  }
}

/// In a child, whose own failures are its exit code.
void in_a_process(void (*test)()) {
  EXPECT_EXIT((test(), std::exit(testing::Test::HasFailure() ? 1 : 0)), testing::ExitedWithCode(0),
              "");
}

TEST(MemoryWatch, CountsTensorsAndRefusesBeyondTheLimit) { in_a_process(count_and_refuse); }
TEST(MemoryWatch, ArenasShareTheLimit) { in_a_process(arenas_count); }
TEST(MemoryWatch, RefusesSettingsThatTorchDoesNotKnow) { in_a_process(allocator_settings); }
TEST(MemoryWatch, KnowsWhichErrorsAreOfMemory) { in_a_process(other_errors); }

}  // namespace
}  // namespace tessera
