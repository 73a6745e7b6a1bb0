#include "cost_models/spec/expert_parallel.h"

#include <algorithm>

namespace tessera {
namespace {

/// "ep 2, etp 1 with tp 2".
std::string degrees_of_experts(const ParallelLayout& layout) {
  return "ep " + std::to_string(layout.ep) + ", etp " + std::to_string(layout.etp) + " with tp " +
         std::to_string(layout.tp);
}

/// What training and generation alike ask: no more ranks than experts.
std::string count_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  if (!model.moe) {
    return layout.ep == 1 ? "" : "ep " + std::to_string(layout.ep) + " of a model without experts";
  }
  if (layout.ep <= model.moe->experts) return {};
  return degrees_of_experts(layout) + " for " + std::to_string(model.moe->experts) +
         " experts; ep may be as many";
}

}  // namespace

std::string model_refusal(const ModelSpec& model) {
  if (model.sliding_window > 0 && !model.full_attention_layers.empty()) {
    return "a sliding window in some layers only; all of them may have one, or none";
  }
  return {};
}

std::string expert_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  const std::string many = count_refusal(model, layout);
  if (!many.empty() || !model.moe) return many;
  const std::string degrees = degrees_of_experts(layout);
  const bool spread = layout.etp == 1 && layout.ep % layout.tp == 0 && layout.sequence_parallel;
  if (layout.etp != layout.tp && !spread) {
    return degrees +
           "; experts are cut as the rest is (etp = tp), or with sequence parallelism whole (etp = "
           "1) where tp divides ep";
  }
  // Ranks among which ZeRO or FSDP would cut a rank's experts once more.
  const int sharing = layout.dp_shard > 1 ? layout.tp * layout.cp * layout.dp_shard
                      : layout.zero > 0   ? layout.stage_ranks()
                                          : 1;
  if (layout.ep > 1 && layout.ep * layout.etp < sharing) {
    return degrees + " beside zero " + std::to_string(layout.zero) +
           "; experts that are dealt out are not cut into shards: ep x etp may be " +
           std::to_string(sharing) + ", or zero 0";
  }
  return {};
}

std::string served_expert_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  const std::string many = count_refusal(model, layout);
  if (!many.empty() || !model.moe) return many;
  if (layout.etp == layout.tp || (layout.etp == 1 && layout.ep % layout.tp == 0)) return {};
  return degrees_of_experts(layout) +
         "; experts are cut as the rest is (etp = tp), or whole (etp = 1) where tp divides ep";
}

int replicas_in_lockstep(const Degrees& degrees) {
  return std::max(1, degrees.ep * degrees.etp / std::max(1, degrees.tp));
}

}  // namespace tessera
