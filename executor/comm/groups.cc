#include "executor/comm/groups.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tessera {
namespace {

/// Position of a coordinate on each axis, slowest first: dp, pp, cp, tp.
using Place = std::array<int, 4>;
enum { kDp, kPp, kCp, kTp };

Place place_of(const RankCoord& coord, const ParallelLayout& layout) {
  return {coord.dp_replicate * layout.dp_shard + coord.dp_shard, coord.pp, coord.cp, coord.tp};
}

/// Ranks that agree with `mine` on every axis that `varies` does not name, in axis order.
std::vector<int> along(const RankMap& map, const Place& mine, const std::array<bool, 4>& varies) {
  std::vector<std::pair<Place, int>> found;
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    const Place place = place_of(map.coords[i], map.layout);
    bool same = true;
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      same = same && (varies[axis] || place[axis] == mine[axis]);
    }
    if (same) found.emplace_back(place, map.ranks[i]);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> ranks;
  for (const auto& [place, rank] : found) ranks.push_back(rank);
  return ranks;
}

/// The first and the last stage, for one of them; a stage in between is in no group.
std::vector<int> ends_of(const std::vector<int>& stages, int rank) {
  if (rank != stages.front() && rank != stages.back()) return {};
  return {stages.front(), stages.back()};
}

/// `make`: a group of so many ranks, by name, of the ranks that this one is with.
template <class Make>
void make_expert_groups(const Communicator& world, const RankMap& map, const Make& make,
                        ParallelGroups& groups) {
  const ParallelLayout& layout = map.layout;
  const bool cut_apart = layout.etp > 1 && layout.etp < layout.tp;
  if (layout.ep == 1 && !cut_apart) return;
  const auto ranks_along = [&](Axis axis) {
    return groups.member ? group_of(map, axis, world.rank()) : std::vector<int>();
  };
  groups.ep = make(layout.ep, "ep", ranks_along(Axis::ep));
  groups.edp = make(layout.edp(), "edp", ranks_along(Axis::edp));
  if (cut_apart) groups.etp = make(layout.etp, "etp", ranks_along(Axis::etp));
}

}  // namespace

ParallelGroups make_groups(Communicator& world, const RankMap& map,
                           const GroupDecorator& decorate) {
  ParallelGroups groups;
  const auto found = std::find(map.ranks.begin(), map.ranks.end(), world.rank());
  groups.index = found == map.ranks.end() ? -1 : static_cast<int>(found - map.ranks.begin());
  groups.member = groups.index >= 0;
  const ParallelLayout& layout = map.layout;
  groups.tp_size = layout.tp;
  groups.cp_size = layout.cp;
  groups.pp_size = layout.pp;
  groups.dp_size = layout.dp;
  Place mine{};
  if (groups.member) {
    groups.coord = map.coords[static_cast<std::size_t>(groups.index)];
    mine = place_of(groups.coord, layout);
    groups.dp_rank = mine[kDp];
    groups.first_stage = mine[kPp] == 0;
    groups.last_stage = mine[kPp] == layout.pp - 1;
  }
  // A group of one needs no communicator; `size` is the same on every rank of the world.
  const auto make = [&](int size, const std::string& name, const std::vector<int>& members) {
    if (size <= 1) return std::unique_ptr<Communicator>();
    std::unique_ptr<Communicator> group = world.split(members);
    return group && decorate ? decorate(std::move(group), name) : std::move(group);
  };
  const auto ranks_along = [&](std::array<bool, 4> varies) {
    return groups.member ? along(map, mine, varies) : std::vector<int>();
  };
  const std::vector<int> stages = ranks_along({false, true, false, false});
  groups.tp = make(layout.tp, "tp", ranks_along({false, false, false, true}));
  groups.cp = make(layout.cp, "cp", ranks_along({false, false, true, false}));
  groups.pp = make(layout.pp, "pp", stages);
  groups.dp = make(layout.dp, "dp", ranks_along({true, false, false, false}));
  const auto data = ranks_along({true, false, false, false});  // shards fastest
  const auto one_axis = [&](bool shard) {
    std::vector<int> members;
    const int width = layout.dp_shard;
    for (int i = 0; i < static_cast<int>(data.size()); ++i) {
      const bool same =
          shard ? i / width == groups.dp_rank / width : i % width == groups.dp_rank % width;
      if (same) members.push_back(data[static_cast<std::size_t>(i)]);
    }
    return members;
  };
  if (layout.dp_shard > 1 && layout.dp_replicate() > 1) {
    groups.dp_shard = make(layout.dp_shard, "dp_shard", one_axis(true));
    groups.dp_replicate = make(layout.dp_replicate(), "dp_replicate", one_axis(false));
  }
  if (layout.cp > 1 && layout.dp > 1) {
    groups.dp_cp = make(layout.dp * layout.cp, "dp_cp", ranks_along({true, false, true, false}));
  }
  groups.model = make(layout.tp * layout.pp, "model", ranks_along({false, true, false, true}));
  groups.embedding = make(layout.pp, "embedding",
                          groups.member ? ends_of(stages, world.rank()) : std::vector<int>());
  groups.role = make(layout.ranks(), "role", groups.member ? map.ranks : std::vector<int>());
  make_expert_groups(world, map, make, groups);
  return groups;
}

std::unique_ptr<Communicator> make_axis_group(Communicator& world, const RankMap& map, Axis axis) {
  if (groups_along(map, axis).front().size() < 2) return nullptr;
  const bool member = map.index_of(world.rank()) >= 0;
  return world.split(member ? group_of(map, axis, world.rank()) : std::vector<int>());
}

}  // namespace tessera
