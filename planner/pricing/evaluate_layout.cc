// What the candidates of one layout share, worked out once: passes by token limit, the optimizer by
// ZeRO stage, bytes of either.
#include <algorithm>

#include "planner/pricing/evaluate_state.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

bool same_degrees(const Candidate& a, const Candidate& b) {
  return a.gpus == b.gpus && a.tp == b.tp && a.pp == b.pp && a.dp == b.dp && a.cp == b.cp &&
         a.vpp == b.vpp && a.ep == b.ep && a.etp == b.etp && a.dp_shard == b.dp_shard &&
         a.head_layers == b.head_layers && a.sequence_parallel == b.sequence_parallel &&
         a.ulysses == b.ulysses;
}

std::size_t index_of(int zero, bool flag) {
  return static_cast<std::size_t>(zero) * 2 + (flag ? 1 : 0);
}

}  // namespace

CandidateGroups CostEvaluator::State::groups(const Candidate& candidate) const {
  const CandidateGroups groups = groups_of(candidate, request);
  const auto own = dealt.find(candidate.role);
  if (own == dealt.end() || !same_degrees(own->second.layout, candidate)) return groups;
  return with_nodes(groups, own->second.nodes);
}

LayoutCosts& CostEvaluator::State::of_layout(RoleModel& model, const Candidate& candidate) {
  LayoutCosts& known = model.latest;
  if (known.stages != nullptr && same_degrees(known.layout, candidate)) return known;
  known.layout = candidate;
  known.groups = groups(candidate);
  known.stages = &stages(model, candidate);
  known.passes.clear();
  known.working.clear();
  known.optimizer.fill({});
  for (auto& bytes : known.resident) bytes.clear();
  known.offload.fill({});
  return known;
}

CostEvaluator::State::Timed CostEvaluator::State::passes(RoleModel& model,
                                                         const Candidate& candidate,
                                                         double sequences, bool training) {
  LayoutCosts& layout = of_layout(model, candidate);
  Candidate asked = candidate;
  const bool reduces = training && candidate.zero == 2;
  if (!training) asked.recompute = Recompute::none;
  if (!reduces && shard_ranks(candidate, request.traits) == 1) asked.zero = 0;
  for (const PipelinePasses& known : layout.passes) {
    if (known.tokens == asked.tokens && known.recompute == asked.recompute &&
        known.training == training && known.zero == asked.zero) {
      return known.time;
    }
  }
  const Timed time = pipeline(model, asked, sequences, training);
  layout.passes.push_back({asked.tokens, asked.recompute, training, asked.zero, time});
  return time;
}

// Of the stage that trains most.
const OptimizerCost& CostEvaluator::State::fullest_optimizer(RoleModel& model,
                                                             const Candidate& candidate) {
  LayoutCosts& layout = of_layout(model, candidate);
  auto& known = layout.optimizer[index_of(candidate.zero, candidate.offload.optimizer)];
  if (known) return *known;
  Elements most;
  for (const StageClass& stage : *layout.stages) {
    const Elements trained = trained_elements(model, candidate, stage);
    if (trained.total() > most.total()) most = trained;
  }
  return known.emplace(optimizer_cost(model, candidate, layout.groups, most));
}

double CostEvaluator::State::offloaded_seconds(RoleModel& model, const Candidate& candidate,
                                               bool training, double steps) {
  if (candidate.offload == Offload{}) return 0;
  const std::size_t moved = index_of(candidate.zero, candidate.offload.parameters) * 4 +
                            index_of(candidate.offload.optimizer ? 1 : 0, training);
  auto& known = of_layout(model, candidate).offload[moved];
  if (!known) known = offload_seconds(model, candidate, training, steps);
  return *known;
}

const std::vector<MemoryUse>& CostEvaluator::State::resident_of_stages(RoleModel& model,
                                                                       const Candidate& candidate) {
  LayoutCosts& layout = of_layout(model, candidate);
  auto& known = layout.resident[index_of(candidate.zero, candidate.offload.parameters)];
  if (known.empty()) {
    for (const StageClass& stage : *layout.stages) {
      known.push_back(resident(model, candidate, stage));
    }
  }
  return known;
}

const std::vector<std::int64_t>& CostEvaluator::State::working_of_stages(RoleModel& model,
                                                                         const Candidate& candidate,
                                                                         CallKind kind) {
  LayoutCosts& layout = of_layout(model, candidate);
  Candidate asked = in_call(candidate, kind == CallKind::train);
  const bool sharded = shard_ranks(candidate, request.traits) > 1;
  if (kind != CallKind::train) asked.recompute = Recompute::none;
  for (const WorkingBytes& known : layout.working) {
    if (known.tokens == asked.tokens && known.max_sequences == asked.max_sequences &&
        known.recompute == asked.recompute && known.sharded == sharded && known.kind == kind) {
      return known.by_stage;
    }
  }
  WorkingBytes& fresh = layout.working.emplace_back();
  fresh = {asked.tokens, asked.max_sequences, asked.recompute, sharded, kind, {}};
  for (const StageClass& stage : *layout.stages) {
    fresh.by_stage.push_back(working(model, asked, stage, stage.index, kind).total());
  }
  return fresh.by_stage;
}

std::int64_t CostEvaluator::State::most_bytes(RoleModel& model, const Candidate& candidate,
                                              Phase phase) {
  const std::optional<CallKind> call = model.calls[static_cast<std::size_t>(phase)];
  const std::vector<MemoryUse>& held = resident_of_stages(model, candidate);
  const std::optional<CallKind> held_by = in_memory(call, candidate);
  const std::vector<std::int64_t>* needed =
      held_by ? &working_of_stages(model, candidate, *held_by) : nullptr;
  std::int64_t most = 0;
  for (std::size_t s = 0; s < held.size(); ++s) {
    const std::int64_t here = on_device(held[s], candidate, phase, call).total();
    most = std::max(most, here + (needed != nullptr ? (*needed)[s] : 0));
  }
  return most;
}

}  // namespace tessera
