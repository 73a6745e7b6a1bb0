#include "planner/pricing/role/role_layout.h"

#include <algorithm>

#include "cost_models/compute.h"
#include "planner/pricing/role/shards.h"

namespace tessera {

LayerRun layer_run(const Candidate& candidate, const CandidateGroups& groups,
                   const EngineTraits& traits) {
  LayerRun run;
  run.tp = candidate.tp;
  run.cp = candidate.cp;
  run.sequence_parallel = candidate.sequence_parallel;
  run.ulysses = candidate.ulysses;
  run.recompute = candidate.recompute;
  run.tp_group = groups.tp;
  run.cp_group = groups.cp;
  if (candidate.ep * candidate.etp > 1) {
    run.ep = candidate.ep;
    run.etp = candidate.etp;
    run.ep_group = groups.ep;
    run.pipelined = candidate.pp > 1;
  }
  run.gathers = shard_ranks(candidate, traits) > 1;
  if (run.gathers || reduces_layers(candidate, traits)) {
    run.dense_group = run.gathers ? groups.shard : groups.replicas;
    run.experts_group = groups.expert_replicas;
  }
  return run;
}

ParallelLayout shard_degrees(const Candidate& candidate, const EngineTraits& traits) {
  ParallelLayout layout{candidate.degrees(), candidate.zero};
  if (traits.shards.over_context && layout.zero == 3) {
    layout.dp *= layout.cp;
    layout.dp_shard *= layout.cp;
    layout.cp = 1;
  }
  return layout;
}

bool same_degrees(const Candidate& a, const Candidate& b) {
  return a.gpus == b.gpus && a.degrees() == b.degrees() && a.head_layers == b.head_layers &&
         a.sequence_parallel == b.sequence_parallel && a.ulysses == b.ulysses;
}

Candidate in_call(Candidate candidate, bool trains) {
  if (trains && candidate.update_tokens > 0) candidate.tokens = candidate.update_tokens;
  candidate.update_tokens = 0;
  if (trains && candidate.update_sequences) candidate.sequences = *candidate.update_sequences;
  candidate.update_sequences.reset();
  return candidate;
}

double slowdown(const Assumptions& assumed, const Candidate& candidate, double part) {
  const auto per_node = static_cast<double>(assumed.cluster().gpus_per_node);
  const double busy = std::min<double>(candidate.gpus, per_node) * part;
  return 1 / core_share(assumed.calibration(), busy, per_node - busy);
}

RoleLayout role_layout(const Assumptions& assumed, ModelParts& parts, const Candidate& candidate,
                       const CandidateGroups& groups) {
  const RoleModel& model = parts.model();
  RoleLayout layout{.assumed = &assumed, .model = &model, .groups = groups};
  layout.parts = &parts.shards(candidate.tp, candidate.ep, candidate.etp);
  layout.stages = &parts.stages(candidate);
  layout.cut = parts.own_cut(candidate);
  if (model.lora.used()) layout.adapters = &parts.adapters(candidate.tp);
  layout.ranks = &parts.ranks(candidate);
  if (model.role == Role::rollout) {
    layout.decoding_ranks =
        &parts.ranks({{.tp = candidate.tp, .ep = candidate.ep, .etp = candidate.etp}});
  }
  return layout;
}

Elements trained_elements(const RoleLayout& layout, const StageClass& stage) {
  return layout.adapters == nullptr ? stage.elements : adapter_sum(*layout.adapters, stage.layers);
}

}  // namespace tessera
