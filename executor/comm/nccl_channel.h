// One ncclComm_t with what a watchdog needs to judge it, and the watchdog of one world's channels.
//
// Every NCCL call on a channel happens under its lock and returns soon, so that an abort from
// another thread never meets a call under way. A channel is used by one thread and looked at by the
// watchdog's. Work runs on the stream of the options.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/nccl_world.h"
#include "executor/comm/stopwatch.h"
#include "simulator/flight_recorder/flight_recorder.h"

namespace tessera {

/// Throws Error(internal) for anything but success.
void check_cuda(cudaError_t code);

class NcclChannel {
 public:
  NcclChannel(const NcclOptions& options, std::string name, std::vector<int> global_ranks);
  /// Peers may still read from this rank: ends together with them, unless something failed.
  ~NcclChannel();
  NcclChannel(const NcclChannel&) = delete;

  const NcclOptions& options() const { return options_; }
  const std::string& name() const { return name_; }
  const std::vector<int>& global_ranks() const { return global_ranks_; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(options_.stream); }

  /// Calls NCCL with the communicator and waits until the call has been taken in.
  template <class Fn>
  void call(Fn fn) {
    {
      const std::lock_guard lock(mutex_);
      throw_if_lost();
      judge(fn(comm_));
    }
    settle();
  }
  /// As call(), for work on the stream, which the flight recorder notes; returns its number there.
  template <class Fn>
  std::int64_t work(CollectiveCall what, Fn fn) {
    what.enqueued = true;
    const std::int64_t number = recorder() != nullptr ? recorder()->begin(recorded_, what) : 0;
    call(fn);
    note_work(number);
    return number;
  }
  /// The group's number in the flight recorder, before any work.
  void record_as(int group) { recorded_ = group; }
  FlightRecorder* recorder() const { return options_.recorder; }

  /// Returns when the stream is empty.
  void wait_for_stream();
  /// Ends the work of this rank on the group; `rank` (global) is who is to blame.
  void give_up(int rank, const std::string& why);
  void announce_and_give_up(int rank, const std::string& why);
  /// The watchdog's look: asynchronous errors, an abort by a peer, work that stands still.
  void inspect(bool look_at_board);
  /// Before the communicator ends; a lost one took its windows and registrations with it.
  void deregister(ncclWindow_t window);
  void deregister(void* registration);
  /// Where a call that makes a communicator puts it.
  ncclComm_t* slot() { return &comm_; }
  /// Polls until the last call is done; throws PeerLost where it failed.
  void settle();

 private:
  bool finalized() const;
  void note_work(std::int64_t number);
  void throw_if_lost() const;
  void judge(ncclResult_t code);
  void give_up_locked(int rank, const std::string& why);

  const NcclOptions options_;
  const std::string name_;
  const std::vector<int> global_ranks_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  cudaEvent_t last_work_ = nullptr;
  bool worked_ = false;
  int recorded_ = FlightRecorder::kNoGroup;
  FlightRecorder::Reached noted_;  // what had begun at last_work_
  Stopwatch since_work_;
  std::optional<int> lost_;
  std::string why_;
};

/// Looks at the channels of one world until the last of its communicators is gone.
class NcclWatchdog {
 public:
  explicit NcclWatchdog(int device) : thread_([this, device] { run(device); }) {}
  ~NcclWatchdog();
  NcclWatchdog(const NcclWatchdog&) = delete;

  void add(NcclChannel* channel);
  void remove(NcclChannel* channel);

 private:
  void run(int device);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::set<NcclChannel*> channels_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace tessera
