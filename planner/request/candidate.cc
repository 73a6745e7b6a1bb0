#include "planner/request/candidate.h"

#include <algorithm>

#include "planner/engines/engine.h"
#include "planner/request/request.h"

namespace tessera {

std::vector<LayerRange> cut_stages(std::int64_t layers, int pp, int vpp, int head_layers) {
  std::vector<LayerRange> stages = even_stages(layers + head_layers, pp, vpp);
  for (LayerRange& range : stages) {
    range.first = std::min(range.first, layers);
    range.last = std::min(range.last, layers);
  }
  return stages;
}

ParallelLayout layout_of(const Candidate& candidate, std::int64_t layers) {
  ParallelLayout layout{candidate.degrees(), candidate.zero};
  layout.sequence_parallel = candidate.sequence_parallel;
  layout.ulysses = candidate.ulysses;
  layout.stages = cut_stages(layers, candidate.pp, candidate.vpp, candidate.head_layers);
  return layout;
}

RankOrder training_order(const Candidate& candidate) {
  const bool trained = candidate.role != Role::rollout;
  return trained && candidate.ep > 1 ? RankOrder::megatron : RankOrder::contiguous;
}

bool replicas_stay_near(const ClusterSpec& cluster, int ranks) {
  return cluster.shares_within() && ranks > 1;
}

RankOrder rollout_order(const Candidate& actor, const Candidate& rollout,
                        const ClusterSpec& cluster) {
  const bool divides = !replicas_stay_near(cluster, rollout.tp * rollout.pp) &&
                       actor.gpus == rollout.gpus && actor.cp == 1 && actor.dp_shard == 1 &&
                       actor.vpp == 1 && actor.ep == 1 && rollout.ep == 1 &&
                       actor.tp % rollout.tp == 0 && actor.pp % rollout.pp == 0;
  return divides ? RankOrder::strided : RankOrder::contiguous;
}

bool takes_rank_lists(std::string_view engine) {
  return engine_named(engine).weights.any_rank_list;
}

std::int64_t most_sequences(const Workload& workload, PromptDealing dealing, int replicas) {
  const auto share = [&](std::int64_t all) { return (all + replicas - 1) / replicas; };
  return dealing == PromptDealing::requests
             ? share(workload.sequences())
             : share(workload.prompts_per_step) * workload.samples_per_prompt;
}

// Tokens of a prefill batch where no sequence is longer.
constexpr std::int64_t kPrefillTokens = 16384;

BatchLimit rollout_batch(const Workload& workload, std::int64_t sequences) {
  const std::int64_t prompt = workload.prompt_tokens;
  return {std::max(workload.longest_prompt(), std::min(kPrefillTokens, sequences * prompt)),
          sequences};
}

}  // namespace tessera
