// Sums over peers' memory beside NCCL's: one thread per GPU of this machine. With fewer than two
// GPUs it says so and ends with CTest's code for a skipped test.
#include "executor/storage/peer_sums.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/comm/nccl_world.h"
#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

constexpr std::size_t kLargest = std::size_t{8} << 20;  // bytes

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

int gpus() { return std::min(8, cuda_device_count()); }

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// To nearest even; no NaN.
std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// Element i of a rank's part in a call; differs in every call.
float part_of(int rank, int call, std::size_t i) {
  const std::uint32_t mixed = (static_cast<std::uint32_t>(i) * 2654435761U) ^
                              static_cast<std::uint32_t>(rank * 97 + call * 7919);
  return static_cast<float>(mixed % 20011) / 1000.0F - 10.0F;
}

template <class Element>
Element rounded(float x) {
  if constexpr (sizeof(Element) == 2) {
    return to_bf16(x);
  } else {
    return x;
  }
}
float widened(std::uint16_t x) { return from_bf16(x); }
float widened(float x) { return x; }

/// What a rank of the test has.
struct Site {
  Communicator& nccl;    // the world
  Communicator& summed;  // the same ranks, small sums by peers' memory
  Communicator& host;
  cudaStream_t stream;
  std::byte* data;  // kLargest bytes on the device
};

void run_on_gpus(const std::function<void(Site&)>& fn) {
  const NcclId id = make_nccl_id();
  run_ranks(gpus(), [&](Communicator& host) {
    const int rank = host.rank();
    check(cudaSetDevice(rank));
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream));
    const auto world =
        make_nccl_world(id, rank, host.size(), {.device = rank, .stream = stream, .timeout_s = 60});
    std::vector<int> all(static_cast<std::size_t>(host.size()));
    std::iota(all.begin(), all.end(), 0);
    const auto summed = with_peer_sums(world->split(all), host, rank, stream);
    std::byte* data = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&data), kLargest));
    Site site{*world, *summed, host, stream, data};
    fn(site);
    check(cudaStreamSynchronize(stream));
    host.barrier();
    cudaFree(data);
  });
}

template <class Element>
std::vector<Element> written(Site& site, int call, std::size_t count, std::size_t offset) {
  std::vector<Element> mine(count);
  for (std::size_t i = 0; i < count; ++i)
    mine[i] = rounded<Element>(part_of(site.host.rank(), call, i));
  check(cudaMemcpyAsync(site.data + offset, mine.data(), count * sizeof(Element),
                        cudaMemcpyHostToDevice, site.stream));
  check(cudaStreamSynchronize(site.stream));
  return mine;
}

template <class Element>
void expect_sums(Site& site, int call, std::size_t count, std::size_t offset) {
  std::vector<Element> got(count);
  check(cudaMemcpyAsync(got.data(), site.data + offset, count * sizeof(Element),
                        cudaMemcpyDeviceToHost, site.stream));
  check(cudaStreamSynchronize(site.stream));
  std::size_t wrong = 0, first = count;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < site.host.size(); ++rank) {
      sum += widened(rounded<Element>(part_of(rank, call, i)));
    }
    if (got[i] == rounded<Element>(sum)) continue;
    ++wrong;
    first = std::min(first, i);
  }
  EXPECT_EQ(wrong, 0U) << "call " << call << ", " << count << " elements, first at " << first;
}

TEST(PeerSums, AddUpInTheOrderOfRanksToTheLastBit) {
  run_on_gpus([](Site& site) {
    int call = 0;
    for (const std::size_t count : {1, 7, 8, 3584, 4096 + 1, 256 * 3584, 1 << 20, 1 << 21}) {
      for (const std::size_t offset : {0, 4, 16}) {  // bytes: also what is not aligned
        written<std::uint16_t>(site, ++call, count, offset);
        site.summed.all_reduce(site.data + offset, count, DType::bf16, ReduceOp::sum);
        expect_sums<std::uint16_t>(site, call, count, offset);
        if (count * 4 + offset > kMostPeerSumBytes) continue;
        written<float>(site, ++call, count, offset);
        site.summed.all_reduce(site.data + offset, count, DType::fp32, ReduceOp::sum);
        expect_sums<float>(site, call, count, offset);
      }
    }
  });
}

/// Sizes change from call to call, and nobody waits between them: regions are written again as
/// soon as they may be.
TEST(PeerSums, FollowOneAnotherWithoutWaiting) {
  run_on_gpus([](Site& site) {
    constexpr std::size_t kCount = 200'000;
    constexpr int kCalls = 3'000;
    std::vector<float> mine(kCount);
    for (std::size_t i = 0; i < kCount; ++i) mine[i] = static_cast<float>(i % 1000 + 1);
    float* const start = reinterpret_cast<float*>(site.data);
    float* const x = start + kCount;
    check(cudaMemcpyAsync(start, mine.data(), kCount * 4, cudaMemcpyHostToDevice, site.stream));
    std::vector<std::vector<float>> seen;
    for (int call = 0; call < kCalls; ++call) {
      const std::size_t count = call % 3 == 0 ? kCount : call % 3 == 1 ? 1 : 3584;
      check(cudaMemcpyAsync(x, start, count * 4, cudaMemcpyDeviceToDevice, site.stream));
      site.summed.all_reduce(x, count, DType::fp32, ReduceOp::sum);
      if (call % 50 != 0) continue;
      std::vector<float>& got = seen.emplace_back(count);
      check(cudaMemcpyAsync(got.data(), x, count * 4, cudaMemcpyDeviceToHost, site.stream));
    }
    check(cudaStreamSynchronize(site.stream));
    for (const std::vector<float>& got : seen) {
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], static_cast<float>(site.host.size()) * mine[i]) << i;
      }
    }
  });
}

TEST(PeerSums, RunInGraphsAsOutsideOfThem) {
  run_on_gpus([](Site& site) {
    constexpr std::size_t kCount = std::size_t{16} * 3584;
    float* const start = reinterpret_cast<float*>(site.data);
    float* const x = start + kCount;
    std::vector<float> ones(kCount, 1.0F), got(kCount);
    check(cudaMemcpyAsync(start, ones.data(), kCount * 4, cudaMemcpyHostToDevice, site.stream));
    check(cudaStreamSynchronize(site.stream));
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(site.stream, cudaStreamCaptureModeThreadLocal));
    check(cudaMemcpyAsync(x, start, kCount * 4, cudaMemcpyDeviceToDevice, site.stream));
    for (int i = 0; i < 5; ++i) site.summed.all_reduce(x, kCount, DType::fp32, ReduceOp::sum);
    check(cudaStreamEndCapture(site.stream, &graph));
    cudaGraphExec_t replayed = nullptr;
    check(cudaGraphInstantiate(&replayed, graph, 0));
    for (int i = 0; i < 101; ++i) {
      check(cudaGraphLaunch(replayed, site.stream));
      if (i % 10 == 3)
        site.summed.all_reduce(site.data + kLargest / 2, 77, DType::fp32, ReduceOp::sum);
    }
    check(cudaMemcpyAsync(got.data(), x, kCount * 4, cudaMemcpyDeviceToHost, site.stream));
    check(cudaStreamSynchronize(site.stream));
    for (const float sum : got) {
      ASSERT_EQ(sum, std::pow(static_cast<float>(site.host.size()), 5.0F));
    }
    site.host.barrier();
    cudaGraphExecDestroy(replayed);
    cudaGraphDestroy(graph);
  });
}

TEST(PeerSums, LeaveWhatIsNoSmallSumToTheGroup) {
  run_on_gpus([](Site& site) {
    const auto ranks = site.host.size();
    constexpr std::size_t kWhole = (kMostPeerSumBytes >> 2) + 1000;  // too large
    written<float>(site, 1, kWhole, 0);
    site.summed.all_reduce(site.data, kWhole, DType::fp32, ReduceOp::sum);
    std::vector<float> got(kWhole);
    check(cudaMemcpyAsync(got.data(), site.data, kWhole * 4, cudaMemcpyDeviceToHost, site.stream));
    check(cudaStreamSynchronize(site.stream));
    for (std::size_t i = 0; i < kWhole; i += 997) {
      float sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += part_of(rank, 1, i);
      ASSERT_NEAR(got[i], sum, 1e-4);
    }
    const std::int64_t mine = site.host.rank() + 3;
    check(cudaMemcpyAsync(site.data, &mine, 8, cudaMemcpyHostToDevice, site.stream));
    site.summed.all_reduce(site.data, 1, DType::int64, ReduceOp::max);
    std::int64_t most = 0;
    check(cudaMemcpyAsync(&most, site.data, 8, cudaMemcpyDeviceToHost, site.stream));
    check(cudaStreamSynchronize(site.stream));
    EXPECT_EQ(most, ranks + 2);
  });
}

/// Without abort() the kernel would wait for ever, and the stream with it.
TEST(PeerSums, EndWhenTheGroupIsGivenUp) {
  run_on_gpus([](Site& site) {
    if (site.host.rank() == 0) {
      site.summed.all_reduce(site.data, 1000, DType::fp32, ReduceOp::sum);
      EXPECT_EQ(cudaStreamQuery(site.stream), cudaErrorNotReady);
      site.summed.abort();
      check(cudaStreamSynchronize(site.stream));
      EXPECT_THROW(
          {
            site.summed.all_reduce(site.data, 1000, DType::fp32, ReduceOp::sum);
            site.summed.barrier();
          },
          PeerLost);
    }
    site.host.barrier();
  });
}

double microseconds_a_call(Site& site, Communicator& group, std::size_t bytes) {
  constexpr int kCalls = 200;
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayed = nullptr;
  group.all_reduce(site.data, bytes / 2, DType::bf16, ReduceOp::sum);
  check(cudaStreamSynchronize(site.stream));
  check(cudaStreamBeginCapture(site.stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kCalls; ++i)
    group.all_reduce(site.data, bytes / 2, DType::bf16, ReduceOp::sum);
  check(cudaStreamEndCapture(site.stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  check(cudaGraphLaunch(replayed, site.stream));
  site.host.barrier();
  check(cudaEventRecord(begin, site.stream));
  check(cudaGraphLaunch(replayed, site.stream));
  check(cudaEventRecord(end, site.stream));
  check(cudaEventSynchronize(end));
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end));
  site.host.barrier();
  cudaGraphExecDestroy(replayed);
  cudaGraphDestroy(graph);
  return 1e3 * ms / kCalls;
}

/// Times are printed, not judged.
TEST(PeerSums, SayWhatACallTakesInAGraph) {
  run_on_gpus([](Site& site) {
    check(cudaMemsetAsync(site.data, 0, kLargest, site.stream));
    for (std::size_t bytes = 2048; bytes <= kMostPeerSumBytes; bytes *= 2) {
      const double nccl = microseconds_a_call(site, site.nccl, bytes);
      const double peers = microseconds_a_call(site, site.summed, bytes);
      if (site.host.rank() != 0) continue;
      std::printf("%d GPUs, %8zu bytes: NCCL %6.2f us, peers' memory %6.2f us\n", site.host.size(),
                  bytes, nccl, peers);
    }
  });
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (tessera::cuda_device_count() < 2) {
    std::fprintf(stderr, "SKIPPED: fewer than two GPUs here, so no sums over peers were tested\n");
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
