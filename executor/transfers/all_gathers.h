// AllGathers: what of a reshard all-gathers can do, on one rank: groups, stages, local copies.
//
// NCCL's all-gathers by copy engines were seen to end on a rank before its peers' copies into its
// memory had (2.28.9, the last round of a reshard): what a gather brought is used only when the
// next one of the group, which begins when all members' earlier ones have ended, has ended.
//
// Made once, collectively over the site's world; run() is collective over it, too. Keeps references
// to what the site points to. One thread; bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/transfers/gathers.h"

namespace tessera {

class AllGathers {
 public:
  AllGathers(const PlacedReshard& plan, const ReshardSite& site, const MergeLimits& limits);

  bool nothing() const { return schedule_.groups.empty(); }  // alike on every rank
  /// The plan with the transfers that no all-gather does.
  PlacedReshard rest_of(const PlacedReshard& plan) const;
  /// Moves what all-gathers do; sources are final. When it returns that has arrived here. Returns
  /// the bytes that came from peers, without what pads merged blocks.
  std::int64_t run();
  std::int64_t stage_bytes() const;

 private:
  struct Group {
    GroupGathers gathers;
    std::unique_ptr<SharedBlock> stage;
    std::unique_ptr<Communicator> communicator;  // nullptr where this rank is no member
  };
  std::int64_t run(const Group& group);
  void post(const Group& group, const MergedGather& gather);

  ReshardSite site_;
  GatherSchedule schedule_;
  std::vector<Group> groups_;
  std::unique_ptr<BlockCopies> own_copies_;  // where the site has none
};

}  // namespace tessera
