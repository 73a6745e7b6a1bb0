#include "planner/plan/shared_weights.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "cost_models/layout/sharding.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"

namespace tessera {
namespace {

bool trains_on_master_weights(const RolePlan& role) {
  const ParallelLayout& layout = role.layout;
  const bool cut = layout.zero >= 1 && layout.dp * layout.cp > 1;
  return role.dtypes.param == DType::fp32 && !cut && !role.offload.optimizer;
}

// What decides about the bytes of a rank, and the parameters that lie alike.
struct Pair {
  RankMap training, rollout;
  ParameterTable table;
  AlikeParameters alike;
  DType type = DType::bf16;

  explicit Pair(const Plan& plan)
      : training(rank_map_of(plan, plan.reshard.front().from)),
        rollout(rank_map_of(plan, plan.reshard.front().to)),
        table(parameter_table(plan.model_of(plan.reshard.front().from))),
        alike(alike_parameters(table, training.layout, rollout.layout)),
        type(plan.find(plan.reshard.front().from)->dtypes.param) {}

  Bytes bytes(std::size_t trains, std::size_t generates) const {
    std::int64_t elements = 0;
    for (std::size_t kind = 0; kind < alike.first.size(); ++kind) {
      const Parameter& one = table.rows[static_cast<std::size_t>(alike.first[kind])];
      const auto own = stored_box(one, training.layout, training.coords[trains]);
      const auto other = compute_box(one, rollout.layout, rollout.coords[generates]);
      if (own && other && intersect(*own, *other) == *own) {
        elements += alike.count[kind] * volume(*own);
      }
    }
    return Bytes{elements * size_of(type)};
  }
};

// Of where a rank stands, what decides which parts of tensors it holds.
std::array<int, 4> held_by(const RankMap& map, std::size_t index) {
  const RankCoord& coord = map.coords[index];
  const ExpertCoord expert = expert_coord(map.layout, coord);
  return {coord.tp, coord.pp, expert.ep, expert.etp};
}

}  // namespace

bool shares_weights(const Plan& plan) {
  if (plan.reshard.empty()) return false;
  const PlannedReshard& pair = plan.reshard.front();
  const RolePlan *actor = plan.find(pair.from), *rollout = plan.find(pair.to);
  if (actor == nullptr || rollout == nullptr) return false;
  const bool as_they_are =
      pair.mode == ReshardMode::minimal && actor->dtypes.param == rollout->dtypes.param;
  const bool stay = pair.keep && !actor->offload.parameters;
  return as_they_are && stay && actor->layout.dp_shard == 1 && !is_one_step_off(plan.schedule) &&
         !trains_on_master_weights(*actor);
}

Bytes shared_weight_bytes(const Plan& plan, int rank) {
  if (!shares_weights(plan)) return {};
  const Pair pair(plan);
  const int trains = pair.training.index_of(rank), generates = pair.rollout.index_of(rank);
  if (trains < 0 || generates < 0) return {};
  return pair.bytes(static_cast<std::size_t>(trains), static_cast<std::size_t>(generates));
}

Bytes least_shared_weight_bytes(const Plan& plan) {
  if (!shares_weights(plan)) return {};
  const Pair pair(plan);
  std::map<int, std::size_t> generates;  // by rank
  for (std::size_t i = 0; i < pair.rollout.ranks.size(); ++i) generates[pair.rollout.ranks[i]] = i;
  std::set<std::pair<std::array<int, 4>, std::array<int, 4>>> seen;
  Bytes least{std::numeric_limits<std::int64_t>::max()};
  for (std::size_t index = 0; index < pair.training.ranks.size(); ++index) {
    const auto other = generates.find(pair.training.ranks[index]);
    if (other == generates.end()) return {};
    const auto here = held_by(pair.training, index), there = held_by(pair.rollout, other->second);
    if (seen.emplace(here, there).second) {
      least = std::min(least, pair.bytes(index, other->second));
    }
  }
  return pair.training.ranks.empty() ? Bytes{} : least;
}

}  // namespace tessera
