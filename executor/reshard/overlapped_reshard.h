// A reshard beside its producer: every bucket leaves when its last writes are done on every rank.
//
// Used by WeightReshard. Reads of mapped memory on one host. A thread of its own waits for peers
// and begins copies, while the caller gives work to the producer's stream. Collective; keeps
// references. Bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/stopwatch.h"
#include "executor/reshard/follower.h"
#include "executor/reshard/reshard_path.h"

namespace tessera {

class OverlappedReshard {
 public:
  OverlappedReshard(const ReshardRounds& rounds, const ReshardSite& site, HostSignals& signals,
                    ReshardPath& path)
      : rounds_(rounds), site_(site), signals_(signals), path_(path) {}
  /// A reshard that was begun and not finished ends for the peers, too.
  ~OverlappedReshard() {
    if (begun()) signals_.abort();
  }

  void begin();
  void ready(int bucket);
  void written(std::span<const int> tensors);
  bool begun() const { return follower_ != nullptr; }
  /// Returns when what this rank reads has arrived: the bytes from peers.
  std::int64_t finish();
  /// Since the first bucket left, or since begin().
  double seconds() const { return since_start_.seconds(); }

 private:
  void await_tensors();
  void ready_complete();
  void follow(Follower& counter);

  const ReshardRounds& rounds_;
  const ReshardSite& site_;
  HostSignals& signals_;
  ReshardPath& path_;           // reads
  std::uint64_t reshards_ = 0;  // so far
  std::int64_t received_ = 0;   // of this one, from peers
  Stopwatch since_start_;
  std::vector<int> marks_;                      // of the producer's stream, by bucket
  std::map<int, std::vector<int>> buckets_of_;  // tensors that are still to be written
  std::vector<int> awaited_;                    // tensors by bucket; -1 = it is ready
  std::unique_ptr<Follower> follower_;          // last: its thread uses the rest
};

}  // namespace tessera
