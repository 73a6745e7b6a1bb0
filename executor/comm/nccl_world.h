// Ranks as processes (or threads) with one GPU each, over NCCL.
//
// Operations are ordered on the caller's stream and return at once; barrier waits. The
// communicators are non-blocking: a watchdog thread per process looks at them every 100 ms and
// aborts one whose peer failed, whose work stands still for `timeout_s`, or that a peer gave up;
// the next call, or the one that waits, then throws PeerLost. NVLS (multicast) stays off unless the
// environment turns it on. NCCL rounds partial 16-bit sums to the type. Free of torch; loads on
// machines without a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "executor/comm/comm_times.h"
#include "executor/comm/communicator.h"

namespace tessera {

class FlightRecorder;

/// The id that rank 0 makes and every rank of a world needs (ncclUniqueId).
using NcclId = std::array<char, 128>;
NcclId make_nccl_id();

/// Where ranks tell one another that a group was given up: NCCL's own abort is local. Used from
/// several threads.
class AbortBoard {
 public:
  virtual ~AbortBoard() = default;
  virtual void post(const std::string& group, int rank) = 0;
  /// The rank that gave the group up, if any.
  virtual std::optional<int> look(const std::string& group) = 0;
};

enum class CtaPolicy { standard, efficiency, zero };  // zero: copy engines instead of SMs

struct NcclOptions {
  int device = 0;          // made current on the calling thread
  void* stream = nullptr;  // cudaStream_t, outlives the world; nullptr = the default stream
  double timeout_s = 600;
  CtaPolicy cta_policy = CtaPolicy::standard;
  /// NCCL launches every operation of a non-blocking communicator from a thread of its own;
  /// blocking ones launch sooner, but a peer that never comes is then noticed by the launcher only.
  bool blocking = false;
  /// Groups share their parent's buffers: less memory, but an abort then ends parent and groups.
  bool share_resources = false;
  std::shared_ptr<AbortBoard> board;   // nullptr = an abort is noticed by its timeout only
  FlightRecorder* recorder = nullptr;  // of all groups' operations; outlives the world
};

/// Collective over the ranks that got the same id. PeerLost when they do not come in time; Error
/// (missing) when the NCCL library is not the one this was compiled for, or there is no such
/// device.
std::unique_ptr<Communicator> make_nccl_world(const NcclId& id, int rank, int size,
                                              const NcclOptions& options);

/// Memory that make_device_block or ncclMemAlloc gave.
struct WindowMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// As world.split(members), with another policy and `windows`, alike on every member, registered as
/// symmetric windows of the group: with CtaPolicy::zero its all-gathers use copy engines only.
/// `world` comes from make_nccl_world. nullptr where this rank is no member.
std::unique_ptr<Communicator> split_with_windows(Communicator& world, std::span<const int> members,
                                                 CtaPolicy policy,
                                                 std::span<const WindowMemory> windows);

/// Registers memory with a group that came from make_nccl_world: messages between registered memory
/// of two ranks then go from one to the other without NCCL's buffers. Ends with the value, which
/// the group and the memory outlive.
std::shared_ptr<const void> register_memory(Communicator& group, const WindowMemory& memory);

/// As world.split(members); the group and what is split from it work on another cudaStream_t.
std::unique_ptr<Communicator> split_on_stream(Communicator& world, std::span<const int> members,
                                              void* stream);

/// Marks times on a CUDA stream by events; see comm_times.h.
std::unique_ptr<DeviceClock> make_cuda_clock(void* stream);

/// Number of CUDA devices; 0 without a driver.
int cuda_device_count();

}  // namespace tessera
