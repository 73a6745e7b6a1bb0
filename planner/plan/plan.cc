#include "planner/plan/plan.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"
#include "planner/plan/schedule.h"

namespace tessera {
namespace {

constexpr auto kRecompute = enum_names<Recompute>(
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}});

}  // namespace

std::string_view name_of(Recompute recompute) { return kRecompute[recompute]; }

const RolePlan* Plan::find(Role role) const {
  for (const RolePlan& candidate : roles) {
    if (candidate.role == role) return &candidate;
  }
  return nullptr;
}

ModelSpec Plan::model_of(Role role) const {
  const RolePlan* const plan = find(role);
  TESSERA_CHECK(plan != nullptr);
  ModelSpec spec = models.at(plan->model).spec;
  const bool scores = role == Role::critic || role == Role::reward;
  spec.head = scores ? ModelHead::value : ModelHead::language_model;
  spec.mtp = plan->mtp;
  return spec;
}

bool reference_lies_as_actor(const Plan& plan) {
  const RolePlan *actor = plan.find(Role::actor), *reference = plan.find(Role::reference);
  if (actor == nullptr || reference == nullptr || actor->model != reference->model ||
      actor->dtypes.param != reference->dtypes.param) {
    return false;
  }
  const auto of_weights = [&](Role role) {
    RankMap map = rank_map_of(plan, role);
    if (map.layout.zero < 3) map.layout.zero = 0;
    return map;
  };
  return of_weights(Role::actor) == of_weights(Role::reference);
}

int Plan::world_size() const {
  int highest = -1;
  for (const RolePlan& role : roles) {
    for (const int rank : role.ranks) highest = std::max(highest, rank);
  }
  return highest + 1;
}

Placement placement_of(const Plan& plan) {
  Placement placement;
  std::vector<std::vector<int>> ranks;
  for (const RolePlan& role : plan.roles) {
    std::vector<int> sorted = role.ranks;
    std::sort(sorted.begin(), sorted.end());
    const auto same = std::find(ranks.begin(), ranks.end(), sorted);
    if (same == ranks.end()) {
      ranks.push_back(std::move(sorted));
      placement.push_back({role.role});
    } else {
      placement[static_cast<std::size_t>(same - ranks.begin())].push_back(role.role);
    }
  }
  return placement;
}

RankMap rank_map_of(const Plan& plan, Role role) {
  const RolePlan* const wanted = plan.find(role);
  TESSERA_CHECK(wanted != nullptr);
  Problems problems;
  RankMap training;
  if (wanted->rank_order == RankOrder::strided) training = rank_map_of(plan, Role::actor);
  RankMap map = make_rank_map(wanted->rank_order, wanted->layout, wanted->ranks,
                              wanted->rank_order == RankOrder::strided ? &training : nullptr,
                              "rank_map", problems);
  TESSERA_CHECK(problems.empty());
  return map;
}

std::vector<ScheduledCall> default_schedule(const Workload& workload) {
  Problems problems;
  const std::vector<int> order = topological_order(workload.dataflow, "", problems);
  TESSERA_CHECK(problems.empty());
  std::vector<ScheduledCall> schedule;
  for (const int i : order) {
    const Call& call = workload.dataflow[static_cast<std::size_t>(i)];
    ScheduledCall scheduled{call.phase, call.role, {}};
    if (call.kind == CallKind::generate) {
      schedule.push_back({Phase::reshard, Role::actor, {}});
      scheduled.after.push_back(Phase::reshard);
    }
    for (const Call& other : workload.dataflow) {
      const bool feeds =
          std::any_of(other.outputs.begin(), other.outputs.end(), [&](const std::string& output) {
            return std::find(call.inputs.begin(), call.inputs.end(), output) != call.inputs.end();
          });
      if (feeds) scheduled.after.push_back(other.phase);
    }
    schedule.push_back(std::move(scheduled));
  }
  return schedule;
}

bool is_one_step_off(const std::vector<ScheduledCall>& schedule) {
  bool generates = false, waits = false;
  for (const ScheduledCall& call : schedule) {
    generates |= call.phase == Phase::gen;
    waits |= std::count(call.after.begin(), call.after.end(), Phase::gen) > 0;
  }
  return generates && !waits && schedule.size() > 2;
}

}  // namespace tessera
