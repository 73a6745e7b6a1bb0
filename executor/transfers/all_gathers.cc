#include "executor/transfers/all_gathers.h"

#include <algorithm>
#include <map>

#include "executor/arena/byte_address.h"

namespace tessera {
namespace {

/// Alike on every rank.
std::int64_t most_groups_of_a_rank(const GatherSchedule& schedule) {
  std::map<int, std::int64_t> groups;
  for (const std::vector<int>& members : schedule.groups) {
    for (const int member : members) ++groups[member];
  }
  std::int64_t most = 1;
  for (const auto& [rank, count] : groups) most = std::max(most, count);
  return most;
}

}  // namespace

AllGathers::AllGathers(const PlacedReshard& plan, const ReshardSite& site,
                       const MergeLimits& limits)
    : site_(site) {
  const int rank = site_.host->rank();
  const LocateBox own = [&](int tensor, const Box& box) { return plan.source(rank, tensor, box); };
  schedule_ = find_gathers(plan.plan, plan.tensors, rank, own, plan.destination);
  const std::int64_t share = most_groups_of_a_rank(schedule_);
  for (std::size_t g = 0; g < schedule_.groups.size(); ++g) {
    const std::vector<int>& members = schedule_.groups[g];
    const auto found = std::find(members.begin(), members.end(), rank);
    Group& group = groups_.emplace_back();
    if (found != members.end()) {
      group.gathers =
          merged_gathers(schedule_, static_cast<int>(g), static_cast<int>(found - members.begin()),
                         {limits.merge_below, limits.stage_bytes / share});
    }
    if (group.gathers.stage_bytes > 0) group.stage = new_block(site_, group.gathers.stage_bytes);
    group.communicator =
        site_.split ? site_.split(members, group.stage.get()) : site_.world->split(members);
  }
  own_copies_ = complete_copies(site_);
}

PlacedReshard AllGathers::rest_of(const PlacedReshard& plan) const {
  PlacedReshard rest = plan;
  rest.plan.transfers.clear();
  for (std::size_t i = 0; i < schedule_.covered.size(); ++i) {
    if (schedule_.covered[i] == 0) rest.plan.transfers.push_back(plan.plan.transfers[i]);
  }
  return rest;
}

std::int64_t AllGathers::run() {
  std::int64_t received = 0;
  for (const Group& group : groups_) {
    if (group.communicator != nullptr) received += run(group);
  }
  site_.copies->await_mark(site_.copies->mark_producer());
  return received;
}

std::int64_t AllGathers::run(const Group& group) {
  const std::int64_t others = group.communicator->size() - 1;
  std::int64_t received = 0;
  std::vector<GatherBlock> large;
  for (const Gather& each : group.gathers.large) {
    large.push_back({at(site_.source, each.from), at(site_.destination, each.to),
                     static_cast<std::size_t>(each.bytes)});
    received += others * each.bytes;
  }
  if (!large.empty()) group.communicator->all_gather_batch(large);
  const GroupGathers& gathers = group.gathers;
  const std::vector<MergedGather>& rounds = gathers.merged;
  run_staged(
      {.count = rounds.size(),
       .behind = GroupGathers::kParts - 1,
       .post = [&](std::size_t k) { post(group, k < rounds.size() ? rounds[k] : gathers.last); },
       .pack =
           [&](std::size_t k, CopyBatch& batch) {
             append(batch, rounds[k].pack, site_.source, group.stage->data());
           },
       .unpack =
           [&](std::size_t k, CopyBatch& batch) {
             append(batch, rounds[k].unpack, group.stage->data(), site_.destination);
           },
       .keep =
           [&](std::size_t k, CopyBatch& batch) {
             append(batch, rounds[k].kept, site_.source, site_.destination);
           }},
      *site_.copies);
  if (rounds.empty()) post(group, gathers.last);
  for (const MergedGather& round : rounds) {
    for (const StagedCopy& copy : round.unpack) received += copy.bytes;
  }
  return received;
}

void AllGathers::post(const Group& group, const MergedGather& gather) {
  std::byte* const stage = at(group.stage->data(), gather.stage);
  const std::int64_t own = group.communicator->rank() * gather.bytes;
  group.communicator->all_gather(stage + own, stage, static_cast<std::size_t>(gather.bytes),
                                 DType::uint8);
}

std::int64_t AllGathers::stage_bytes() const {
  std::int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.gathers.stage_bytes;
  return bytes;
}

}  // namespace tessera
