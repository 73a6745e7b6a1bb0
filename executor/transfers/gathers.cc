#include "executor/transfers/gathers.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tessera {
namespace {

constexpr std::int64_t kAlignment = 256;  // of blocks in a stage

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Transfers of one tensor to one rank, in the order of their blocks along the outer dim.
using Arrivals = std::vector<int>;

std::optional<std::vector<int>> members_of(const ReshardPlan& plan, const Arrivals& arrivals,
                                           int destination) {
  std::vector<int> members;
  for (const int index : arrivals) {
    const Transfer& transfer = plan.transfers[static_cast<std::size_t>(index)];
    const Box& first = plan.transfers[static_cast<std::size_t>(arrivals[0])].box;
    if (volume(transfer.box) != volume(first)) return std::nullopt;
    members.push_back(transfer.source);
  }
  std::vector<int> distinct = members;
  std::sort(distinct.begin(), distinct.end());
  const bool twice = std::adjacent_find(distinct.begin(), distinct.end()) != distinct.end();
  const bool own = std::binary_search(distinct.begin(), distinct.end(), destination);
  if (members.size() < 2 || twice || !own) return std::nullopt;
  return members;
}

class Finder {
 public:
  Finder(const ReshardPlan& plan, std::span<const ShardedTensor> tensors)
      : plan_(plan), arrivals_(tensors.size()) {
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
      const Transfer& transfer = plan.transfers[i];
      arrivals_[static_cast<std::size_t>(transfer.tensor)][transfer.destination].push_back(
          static_cast<int>(i));
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const auto dim = static_cast<std::size_t>(tensors[t].outer_dim);
      for (auto& [destination, list] : arrivals_[t]) {
        std::sort(list.begin(), list.end(),
                  [&](int a, int b) { return box(a).dims[dim].lo < box(b).dims[dim].lo; });
      }
    }
  }

  GatherSchedule find(int rank, const LocateBox& source, const LocateBox& destination) {
    GatherSchedule made;
    made.covered.assign(plan_.transfers.size(), 0);
    std::map<std::vector<int>, int> groups;
    for (const std::map<int, Arrivals>& by_rank : arrivals_) {
      for (const auto& [first, list] : by_rank) {
        const auto members = members_of(plan_, list, first);
        // Each group once, at its lowest rank; the others must agree.
        if (!members || *std::min_element(members->begin(), members->end()) != first) continue;
        if (!all_alike(by_rank, *members, list)) continue;
        const int group =
            groups.try_emplace(*members, static_cast<int>(groups.size())).first->second;
        for (const int member : *members) {
          for (const int index : by_rank.at(member)) {
            made.covered[static_cast<std::size_t>(index)] = 1;
          }
          if (member == rank) add(made, group, by_rank.at(rank), rank, source, destination);
        }
      }
    }
    made.groups.resize(groups.size());
    for (const auto& [members, group] : groups) {
      made.groups[static_cast<std::size_t>(group)] = members;
    }
    return made;
  }

 private:
  const Transfer& transfer(int index) const {
    return plan_.transfers[static_cast<std::size_t>(index)];
  }
  const Box& box(int index) const { return transfer(index).box; }

  bool all_alike(const std::map<int, Arrivals>& by_rank, const std::vector<int>& members,
                 const Arrivals& list) const {
    return std::all_of(members.begin(), members.end(), [&](int member) {
      const auto found = by_rank.find(member);
      return found != by_rank.end() &&
             std::equal(list.begin(), list.end(), found->second.begin(), found->second.end(),
                        [&](int a, int b) {
                          return transfer(a).source == transfer(b).source && box(a) == box(b);
                        });
    });
  }

  void add(GatherSchedule& made, int group, const Arrivals& list, int rank, const LocateBox& source,
           const LocateBox& destination) const {
    Gather gather{.group = group};
    for (const int index : list) {
      if (transfer(index).source != rank) continue;
      const ByteRange from = source(transfer(index).tensor, box(index))[0];
      gather.from = from.offset, gather.bytes = from.bytes;
    }
    gather.to = destination(transfer(list[0]).tensor, box(list[0]))[0].offset;
    made.gathers.push_back(gather);
  }

  const ReshardPlan& plan_;
  std::vector<std::map<int, Arrivals>> arrivals_;  // by tensor and destination
};

}  // namespace

GatherSchedule find_gathers(const ReshardPlan& plan, std::span<const ShardedTensor> tensors,
                            int rank, const LocateBox& source, const LocateBox& destination) {
  return Finder(plan, tensors).find(rank, source, destination);
}

GroupGathers merged_gathers(const GatherSchedule& schedule, int group, int index,
                            const MergeLimits& limits) {
  const auto members =
      static_cast<std::int64_t>(schedule.groups[static_cast<std::size_t>(group)].size());
  // Bytes of one member's block in a round.
  const std::int64_t most =
      std::max(limits.stage_bytes / GroupGathers::kParts / members / kAlignment, std::int64_t{1}) *
      kAlignment;
  struct Piece {
    Gather whole;
    std::int64_t first = 0, bytes = 0;
    std::int64_t place = 0;  // in the block
  };
  GroupGathers made;
  std::vector<std::vector<Piece>> rounds;
  std::int64_t used = 0, block = 0;
  for (const Gather& gather : schedule.gathers) {
    if (gather.group != group) continue;
    if (gather.bytes >= limits.merge_below) {
      made.large.push_back(gather);
      continue;
    }
    for (std::int64_t first = 0; first < gather.bytes;) {
      if (rounds.empty() || used == most) {
        rounds.emplace_back();
        used = 0;
      }
      const std::int64_t bytes = std::min(gather.bytes - first, most - used);
      rounds.back().push_back({gather, first, bytes, used});
      first += bytes;
      used += aligned(bytes);
      block = std::max(block, used);
    }
  }
  made.last = {.stage = GroupGathers::kParts * members * block, .bytes = kAlignment};
  made.stage_bytes = made.last.stage + members * kAlignment;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    MergedGather& merged = made.merged.emplace_back();
    merged.stage = static_cast<std::int64_t>(k) % GroupGathers::kParts * members * block;
    merged.bytes = rounds[k].back().place + aligned(rounds[k].back().bytes);
    for (const auto& [whole, first, bytes, place] : rounds[k]) {
      for (std::int64_t member = 0; member < members; ++member) {
        const std::int64_t at = merged.stage + member * merged.bytes + place;
        const std::int64_t to = whole.to + member * whole.bytes + first;
        if (member == index) {
          merged.pack.push_back({whole.from + first, at, bytes});
          merged.kept.push_back({whole.from + first, to, bytes});
        } else {
          merged.unpack.push_back({at, to, bytes});
        }
      }
    }
  }
  return made;
}

}  // namespace tessera
