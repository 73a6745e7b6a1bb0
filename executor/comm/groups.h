// The communicators of one role on one rank.
//
// Owned by whoever runs the role; must not outlive the world they were split from. Made once at
// start: splitting talks to every rank of the world.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cost_models/layout/rank_map.h"
#include "executor/comm/communicator.h"

namespace tessera {

/// nullptr where the group has one member, or this rank is not in the role. Ranks within a group
/// follow its axis; model: tp fastest, then pp.
struct ParallelGroups {
  bool member = false;  // this rank belongs to the role; all else is unset when it does not
  int index = -1;       // position within the role
  RankCoord coord;
  int tp_size = 1, cp_size = 1, pp_size = 1, dp_size = 1;
  int dp_rank = 0;  // dp_replicate * layout.dp_shard + dp_shard
  bool first_stage = true, last_stage = true;

  std::unique_ptr<Communicator> tp, cp, pp;
  std::unique_ptr<Communicator> dp;  // dp_replicate x dp_shard, shards fastest
  /// The two axes of dp, where both are longer than one: else dp is the one that is.
  std::unique_ptr<Communicator> dp_shard, dp_replicate;
  /// dp x cp, cp fastest, where both are longer than one: ranks with equal parameters.
  std::unique_ptr<Communicator> dp_cp;
  std::unique_ptr<Communicator> model;      // tp x pp: the ranks of one model replica
  std::unique_ptr<Communicator> embedding;  // first and last stage of one tp and dp; only pp > 1
  std::unique_ptr<Communicator> role;       // every rank of the role, in role order
  /// Ranks of a stage that hold different experts, and those that hold the same (ExpertCoord);
  /// only where experts are dealt out, or cut into other parts than the rest: else they lie as the
  /// rest does, or whole on every rank.
  std::unique_ptr<Communicator> ep, edp;
  std::unique_ptr<Communicator> etp;  // neighbours in tp that cut the same experts; 1 < etp < tp
};

/// Wraps a new group, e.g. to time it; gets the group's name ("tp", "role", ...).
using GroupDecorator = std::function<std::unique_ptr<Communicator>(
    std::unique_ptr<Communicator> group, const std::string& name)>;

/// Collective over the world: every rank calls it for every role in the same order, members of the
/// role or not. The map's ranks are ranks of `world`.
ParallelGroups make_groups(Communicator& world, const RankMap& map,
                           const GroupDecorator& decorate = {});

/// The ranks that differ from this one in `axis` only, as a group of `world`; nullptr where there
/// are no others. Every rank of the world calls it, on the map or not.
std::unique_ptr<Communicator> make_axis_group(Communicator& world, const RankMap& map, Axis axis);

}  // namespace tessera
