// A hundred switches from training to generation and back change no weight and no state of a random
// generator, and keep no memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "executor/comm/thread_communicator.h"
#include "executor/data/init_model.h"
#include "executor/loop/calls.h"
#include "executor/run_state/generator_state.h"
#include "tests/executor/loop/worker_rig.h"
#include "tests/executor/reshard/layout_cases.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kWarm = 15;

/// Bytes of this process that lie in memory.
std::int64_t resident_bytes() {
  std::int64_t all = 0, here = 0;
  std::ifstream("/proc/self/statm") >> all >> here;
  return here * sysconf(_SC_PAGESIZE);
}

/// What must be the same after every switch, on one rank.
struct Kept {
  std::uint64_t generators = 0;
  torch::Tensor trained, served;
  std::vector<Sequence> samples;
  LogProbs scores;
};

Kept switched(Worker& worker, std::int64_t vocab) {
  const RoleWorker &actor = *worker.find(Role::actor), &rollout = *worker.find(Role::rollout);
  const ReshardReport report = move_weights(worker);
  const CertificateReport proof = verify_weights(worker, report.wire);
  EXPECT_GT(proof.compared + proof.shared, 0);
  Kept kept;
  kept.served = values_of(*rollout.weights);
  kept.samples = generated(rollout, 0, vocab);
  const testing_models::Tokens tokens = testing_models::random_tokens(3, vocab, 40);
  kept.scores = actor.trainer->log_probs(tokens.sequences(), {.token_limit = 30});
  actor.trainer->wake();
  kept.trained = actor.weights->storage.clone();
  actor.trainer->rest();
  kept.generators = save_generators(torch::kCPU).digest;
  return kept;
}

void expect_same(const Kept& now, const Kept& first) {
  EXPECT_EQ(now.generators, first.generators);
  EXPECT_TRUE(torch::equal(now.trained, first.trained));
  EXPECT_TRUE(torch::equal(now.served, first.served));
  EXPECT_TRUE(now.samples == first.samples);
  EXPECT_EQ(now.scores.log_prob, first.scores.log_prob);
}

TEST(Switches, AHundredChangeNothingAndKeepNoMemory) {
  torch::set_num_threads(1);
  const fs::path folder =
      fs::temp_directory_path() / ("tessera-switches-" + std::to_string(getpid()));
  fs::create_directories(folder);
  Problems problems;
  ASSERT_TRUE(init_model("tiny-qwen2-digits", folder / "model", {.seed = 3}, problems));
  const ModelSpec model = *read_model_spec(folder / "model", problems);
  const std::int64_t layers = model.layers;
  Setting parked{.from = layout_of(1, 1, 4, layers), .to = layout_of(2, 1, 2, layers)};
  parked.mode = ReshardMode::full;
  parked.park = true;
  int switches = 50;  // a hundred in all
  for (const Setting& setting :
       {Setting{.from = layout_of(2, 2, 1, layers), .to = layout_of(2, 1, 2, layers)},
        Setting{.from = layout_of(1, 1, 1, layers, 4), .to = layout_of(2, 1, 2, layers)}, parked}) {
    SCOPED_TRACE(described(setting));
    const Plan plan = plan_of(setting, model, folder / "model");
    run_ranks(plan.world_size(), [&](Communicator& world) {
      Worker worker = make_worker(plan, {}, {.world = &world, .host = &world});
      const Kept first = switched(worker, model.vocab);
      std::int64_t warm = 0;
      for (int i = 1; i < switches; ++i) {
        expect_same(switched(worker, model.vocab), first);
        if (i == kWarm) warm = resident_bytes();
      }
      EXPECT_LT(resident_bytes() - warm, 10 << 20);
      world.barrier();
    });
    switches = 25;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera
