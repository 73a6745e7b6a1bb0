#include "executor/launch/device_setup.h"

#include <ATen/Parallel.h>
#include <c10/cuda/CUDAStream.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/comm/group_name.h"
#include "executor/comm/nccl_world.h"
#include "executor/launch/host_staged_communicator.h"
#include "executor/launch/rendezvous.h"

namespace tessera {
namespace {

LaunchEnvironment launch_environment() {
  Problems problems;
  LaunchEnvironment launch = read_launch_environment(process_environment(), problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return launch;
}

bool wants_gpu(const std::string& device, const LaunchEnvironment& launch) {
  if (device == "cpu") return false;
  const int gpus = cuda_device_count();
  const bool enough = gpus > launch.local_rank && gpus >= launch.local_size;
  if (device == "cuda" && !enough) {
    throw Error(ExitCode::missing, "rank " + std::to_string(launch.rank) +
                                       " has no GPU: " + std::to_string(gpus) +
                                       " are visible (nvidia-smi lists them)");
  }
  return enough;
}

/// Freed memory stays with the process: handing tensors' pages back to the system and faulting them
/// in again took 15 % of a training step.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

/// Makes a stream of the pool torch's current one, so that every operation is ordered on it. Of
/// low priority: collectives of a side lane get multiprocessors as soon as some are free.
void* use_own_stream(int device) {
  const c10::cuda::CUDAStream stream =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, static_cast<c10::DeviceIndex>(device));
  c10::cuda::setCurrentCUDAStream(stream);
  return stream.stream();
}

}  // namespace

RankSetup set_up_rank(const std::string& device, double timeout_s, const MemoryOptions& memory,
                      std::atomic<bool>* waiting, FlightRecorder* recorder) {
  const LaunchEnvironment launch = launch_environment();
  RankSetup setup;
  setup.rank = launch.rank;
  setup.size = launch.world_size;
  WorldOptions options{.timeout_s = timeout_s, .waiting = waiting, .recorder = recorder};
  void* stream = nullptr;
  const bool gpu = wants_gpu(device, launch);
  if (gpu) {
    setup.device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(launch.local_rank));
    options.nccl.device = launch.local_rank;
    stream = use_own_stream(launch.local_rank);
    setup.clock = make_cuda_clock(stream);
    setup.stream = stream;
    // Offloaded optimizers compute on the host; launchers leave one thread to a rank.
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    at::set_num_threads(std::max(1, cores / std::max(1, launch.local_size)));
  } else {
    at::set_num_threads(1);
    keep_freed_memory();
  }
  setup.memory = std::make_unique<MemoryWatch>(gpu ? launch.local_rank : -1, memory);
  setup.world = make_world(launch, gpu ? DeviceKind::cuda : DeviceKind::cpu, stream, options);
  if (gpu) setup.host_staged = make_host_staged(*setup.world, launch.local_rank);
  return setup;
}

SideLane make_side_lane(const RankSetup& setup) {
  if (!setup.device.is_cuda() || setup.size == 1) return {};
  const c10::cuda::CUDAStream stream =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/true, setup.device.index());
  std::vector<int> all(static_cast<std::size_t>(setup.size));
  std::iota(all.begin(), all.end(), 0);
  SideLane lane{SideStream(stream.unwrap()), split_on_stream(*setup.world, all, stream.stream())};
  name_group(*lane.world, "world, side lane");
  return lane;
}

}  // namespace tessera
