// The conformance suite over NCCL: one thread per GPU of this machine. Without a GPU it says so and
// ends with CTest's code for a skipped test.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "executor/comm/comm_times.h"
#include "executor/comm/nccl_world.h"
#include "tests/executor/comm/comm_conformance.h"

namespace tessera {
namespace {

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

struct CudaMemory {
  static void* allocate(std::size_t bytes) {
    void* data = nullptr;
    check(cudaMalloc(&data, bytes));
    return data;
  }
  static void release(void* data) { cudaFree(data); }
  static void write(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    check(cudaDeviceSynchronize());
  }
  static void read(void* to, const void* from, std::size_t bytes) {
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
};

class SharedBoard final : public AbortBoard {
 public:
  void post(const std::string& group, int rank) override {
    const std::lock_guard lock(mutex_);
    posted_.emplace(group, rank);
  }
  std::optional<int> look(const std::string& group) override {
    const std::lock_guard lock(mutex_);
    const auto found = posted_.find(group);
    return found == posted_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> posted_;
};

/// Runs fn(world, stream) on one thread per GPU, at most 8.
void run_on_gpus(bool blocking, const std::function<void(Communicator&, cudaStream_t)>& fn) {
  const int ranks = std::min(8, cuda_device_count());
  const NcclId id = make_nccl_id();
  const auto board = std::make_shared<SharedBoard>();
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        check(cudaSetDevice(r));
        cudaStream_t stream = nullptr;
        check(cudaStreamCreate(&stream));
        {
          const auto world = make_nccl_world(id, r, ranks,
                                             {.device = r,
                                              .stream = stream,
                                              .timeout_s = 60,
                                              .blocking = blocking,
                                              .board = board});
          fn(*world, stream);
        }
        cudaStreamDestroy(stream);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Nccl {
  using Memory = CudaMemory;
  static constexpr bool kFp32Sums = false;
  static void run(const std::function<void(Communicator&)>& fn) {
    run_on_gpus(false, [&](Communicator& world, cudaStream_t) { fn(world); });
  }
};

}  // namespace

namespace conformance {
INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, CommConformance, Nccl);
}  // namespace conformance

namespace {

TEST(NcclCommunicator, KeepsMulticastOffUnlessTold) {
  make_nccl_id();
  EXPECT_STREQ(::getenv("NCCL_NVLS_ENABLE"), "0");
}

TEST(NcclCommunicator, TimesOperationsByEventsOnTheStream) {
  for (const bool blocking : {false, true}) {
    run_on_gpus(blocking, [&](Communicator& world, cudaStream_t stream) {
      Timeline timeline;
      CommTimes times(world.rank(), make_cuda_clock(stream), &timeline);
      const std::vector<int> all = [&] {
        std::vector<int> ranks;
        for (int r = 0; r < world.size(); ++r) ranks.push_back(r);
        return ranks;
      }();
      const auto group = times.timed(world.split(all), "tp");
      void* data = CudaMemory::allocate(4 << 20);
      check(cudaMemset(data, 0, 4 << 20));
      group->all_reduce(data, 1 << 20, DType::fp32, ReduceOp::sum);  // connects
      times.metrics();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 100; ++i) group->all_reduce(data, 1024, DType::fp32, ReduceOp::sum);
      const double issue =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 100;
      group->barrier();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const auto metrics = times.metrics();
      EXPECT_GT(metrics.at("comm/tp/all_reduce_s"), 0);
      EXPECT_LT(metrics.at("comm/tp/all_reduce_s"), seconds);
      EXPECT_EQ(metrics.at("comm/tp/all_reduce_bytes"), 100 * 4096);
      EXPECT_EQ(timeline.spans.size(), 102u);
      if (world.rank() == 0) {
        std::printf("%s, %d GPUs: all_reduce 4 KiB, host issue %.1f us, on the stream %.1f us\n",
                    blocking ? "blocking" : "non-blocking", world.size(), issue * 1e6,
                    metrics.at("comm/tp/all_reduce_s") * 1e4);
      }
      CudaMemory::release(data);
    });
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (tessera::cuda_device_count() == 0) {
    std::fprintf(stderr, "SKIPPED: no GPU here, so nothing of NCCL was tested\n");
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
