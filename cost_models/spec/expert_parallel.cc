#include "cost_models/spec/expert_parallel.h"

#include <algorithm>

namespace tessera {
namespace {

/// "ep 2, etp 1 with tp 2".
std::string degrees_of_experts(const ParallelLayout& layout) {
  return "ep " + std::to_string(layout.ep) + ", etp " + std::to_string(layout.etp) + " with tp " +
         std::to_string(layout.tp);
}

/// What training and generation alike ask: no more ranks than experts, equal shares of the ranks
/// that cut the rest.
std::string degree_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  if (!model.moe) {
    return layout.ep == 1 ? "" : "ep " + std::to_string(layout.ep) + " of a model without experts";
  }
  if (layout.ep > model.moe->experts) {
    return degrees_of_experts(layout) + " for " + std::to_string(model.moe->experts) +
           " experts; ep may be as many";
  }
  if (layout.tp % layout.etp != 0) return degrees_of_experts(layout) + "; etp divides tp";
  return {};
}

}  // namespace

std::string model_refusal(const ModelSpec& model) {
  if (model.sliding_window > 0 && !model.full_attention_layers.empty()) {
    return "a sliding window in some layers only; all of them may have one, or none";
  }
  if (model.rope.kind == RopeScalingKind::longrope) {
    return "longrope scaling of rotary positions, whose factors change with the length of a batch; "
           "it may be linear, llama3, yarn or none";
  }
  return {};
}

bool experts_apart(const ModelSpec& model, const ParallelLayout& layout) {
  return model.moe && (layout.ep > 1 || layout.etp != layout.tp);
}

std::string expert_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  const std::string degree = degree_refusal(model, layout);
  if (!degree.empty() || !model.moe) return degree;
  const std::string degrees = degrees_of_experts(layout);
  if (layout.etp != layout.tp && !layout.sequence_parallel) {
    return degrees +
           "; experts are cut as the rest is (etp = tp), or with sequence parallelism into fewer "
           "parts";
  }
  // Ranks among which ZeRO or FSDP would cut a rank's experts once more.
  const int sharing = layout.dp_shard > 1 ? layout.tp * layout.cp * layout.dp_shard
                      : layout.zero > 0 && layout.dp * layout.cp > 1 ? layout.stage_ranks()
                                                                     : 1;
  if (experts_apart(model, layout) && layout.ep * layout.etp < sharing) {
    return degrees + " beside zero " + std::to_string(layout.zero) +
           "; experts that lie apart from the rest are not cut into shards: ep x etp may be " +
           std::to_string(sharing) + ", or zero 0";
  }
  return {};
}

std::string served_expert_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  const std::string degree = degree_refusal(model, layout);
  if (!degree.empty() || !model.moe) return degree;
  const int together = layout.ep * layout.etp;  // ranks that hold all experts
  if (together % layout.tp == 0 || layout.tp % together == 0) return {};
  return degrees_of_experts(layout) + "; ep x etp is a multiple or a divisor of tp";
}

int replicas_in_lockstep(const Degrees& degrees) {
  return std::max(1, degrees.ep * degrees.etp / std::max(1, degrees.tp));
}

}  // namespace tessera
