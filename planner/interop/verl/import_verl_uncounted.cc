// What verl 0.9.1 does where a key asks for it, and no price counts.
#include <array>
#include <string>
#include <string_view>

#include "planner/interop/verl/verl_import.h"

namespace tessera {
namespace {

/// A key and what it does where it has another value than verl's own.
struct Uncounted {
  std::string_view key, does;
};

/// False unless they are stated.
constexpr std::array kSwitchedOn{
    Uncounted{
        "distillation.enabled",
        "the teacher's servers, their memory and time are not counted, nor what the loss keeps "
        "of them"},
    Uncounted{"algorithm.filter_groups.enable",
              "generation for the groups that are dropped is not counted: steps take longer by it"},
    Uncounted{"actor_rollout_ref.rollout.multi_turn.enable",
              "turns are counted as one response: tools' waits and their prompts are not"},
    Uncounted{"actor_rollout_ref.rollout.disaggregation.enabled",
              "servers are counted as prefilling and decoding on the same GPUs"},
    Uncounted{"actor_rollout_ref.rollout.multi_stage_wake_up",
              "weights and cache are counted as present while weights are sent: less is held"},
    Uncounted{"actor_rollout_ref.actor.use_prefix_grouper",
              "prompts are counted with each of their samples: updates are quicker and hold less"},
    Uncounted{"actor_rollout_ref.actor.entropy_from_logits_with_chunking",
              "the entropy is counted with whole logits: the update holds less"},
    Uncounted{"actor_rollout_ref.actor.entropy_checkpointing",
              "what the entropy keeps is counted: the update holds less and computes it twice"}};

/// The same of a model that is trained, below its role.
constexpr std::array kOfTraining{
    Uncounted{"pad_to_length",
              "what pads sequences is not counted: calls take longer and hold more"},
    Uncounted{"qat.enable", "quantizing weights in training is not counted"},
    Uncounted{"full_determinism", "kernels are counted as the quickest: calls take longer"},
    Uncounted{
        "forward_prefetch",
        "one layer is counted as gathered at a time: calls hold one more, and hide more of the "
        "gathering"},
    Uncounted{"offload_policy", "weights are counted as present: calls hold less and copy them"},
    Uncounted{"use_megatron_fsdp", "shards are counted as those of the distributed optimizer"},
    Uncounted{"dynamic_context_parallel",
              "every sequence is counted over all context-parallel ranks"}};
constexpr std::array<std::string_view, 5> kTraining{
    "actor_rollout_ref.actor.", "actor_rollout_ref.actor.fsdp_config.",
    "actor_rollout_ref.actor.megatron.", "critic.fsdp.", "critic.megatron."};

/// The same, below a model's own keys.
constexpr std::array kOfModels{
    Uncounted{"use_liger", "layers are counted with transformers' kernels: calls hold less"},
    Uncounted{"tiled_mlp.enabled",
              "MLPs are counted whole: the update holds less and computes them twice"},
    Uncounted{"enable_activation_offload",
              "what layers keep is counted on the GPU: the update holds less and copies it"}};
constexpr std::array<std::string_view, 2> kModels{"actor_rollout_ref.model.", "critic.model."};

/// True unless they are stated.
constexpr std::array kSwitchedOff{
    Uncounted{"actor_rollout_ref.rollout.enable_prefix_caching",
              "prompts are counted as read once by a server: generation takes longer"},
    Uncounted{"actor_rollout_ref.rollout.enable_chunked_prefill",
              "prompts are counted as read beside decoding: generation takes longer"},
    Uncounted{"actor_rollout_ref.actor.use_torch_compile",
              "the entropy is counted as compiled: it holds more"},
    Uncounted{"actor_rollout_ref.actor.fsdp_config.use_torch_compile",
              "the entropy is counted as compiled: it holds more"},
    Uncounted{"actor_rollout_ref.actor.megatron.use_remove_padding",
              "sequences are counted as packed: padded ones take longer and hold more"},
    Uncounted{"critic.megatron.use_remove_padding",
              "sequences are counted as packed: padded ones take longer and hold more"}};

/// 0 unless they are stated.
constexpr std::array kNumbers{
    Uncounted{"critic.model.lora_rank", "the critic is counted as trained whole"},
    Uncounted{"critic.model.lora.rank", "the critic is counted as trained whole"},
    Uncounted{"actor_rollout_ref.rollout.over_sample_rate",
              "requests that are given up are not counted"},
    Uncounted{"actor_rollout_ref.actor.fsdp_config.wrap_policy.min_num_params",
              "layers are counted as gathered one by one"},
    Uncounted{"critic.fsdp.wrap_policy.min_num_params",
              "layers are counted as gathered one by one"}};

void note_uncounted(VerlImport& in, const std::string& key, std::string_view does) {
  in.note(key + ": " + std::string(does) + ".");
}

template <class Table>
void note_switches(VerlImport& in, const Table& table, std::string_view block, bool otherwise) {
  for (const auto& [key, does] : table) {
    const std::string whole = std::string(block) + std::string(key);
    if (in.flag(whole, otherwise) != otherwise) note_uncounted(in, whole, does);
  }
}

// MtpConfig of workers/config/model.py.
const std::string kPrediction = "actor_rollout_ref.model.mtp.";

bool has_prediction_layers(VerlImport& in) {
  return in.plan().models.at("actor").spec.mtp_layers > 0 && in.flag(kPrediction + "enable", false);
}

// What the plan does not say of layers that predict further tokens, and check_mtp_config of
// utils/megatron_utils.py.
void note_prediction_layers(VerlImport& in) {
  const std::string key = kPrediction + "enable";
  if (!in.flag(key, false)) return;
  const ModelSpec& model = in.plan().models.at("actor").spec;
  const bool megatron = in.config.engine == VerlEngine::megatron;
  if (model.mtp_layers == 0) {
    if (!megatron) return;
    return in.note_stop(key, "true", "a model with layers of multi-token prediction",
                        "a ValueError of the actor's worker");
  }
  if (megatron && in.flag("actor_rollout_ref.model.use_fused_kernels", false)) {
    note_uncounted(in, "actor_rollout_ref.model.use_fused_kernels",
                   "verl does without fused kernels where layers of multi-token prediction are");
  }
  if (rollouts_prediction_layers(in) == MtpUse::left_out) return;
  note_uncounted(in, kPrediction + "enable_rollout",
                 "servers draft with layers of multi-token prediction, whose weights are counted; "
                 "how many drafts are accepted nobody knows, and the time of generation is that "
                 "without drafts");
}

}  // namespace

// The reference has none (workers/engine_workers.py), and transformers' classes leave them out.
MtpUse actors_prediction_layers(VerlImport& in) {
  if (in.config.engine != VerlEngine::megatron || !has_prediction_layers(in)) {
    return MtpUse::left_out;
  }
  return in.flag(kPrediction + "enable_train", false) ? MtpUse::trained : MtpUse::held;
}

MtpUse rollouts_prediction_layers(VerlImport& in) {
  const bool drafts = has_prediction_layers(in) && in.flag(kPrediction + "enable_rollout", false);
  return drafts ? MtpUse::held : MtpUse::left_out;
}

// Rollout correction weighs or leaves out tokens by the server's log-probs
// (trainer/config/algorithm.py, RolloutCorrectionConfig).
ToldLogProbs told_log_probs(VerlImport& in) {
  const std::string key = "actor_rollout_ref.rollout.calculate_log_probs";
  if (!in.flag(key, true)) return ToldLogProbs::untold;
  const auto corrects = [&](const std::string& by) {
    const std::string value = in.text("algorithm.rollout_correction." + by, "null");
    return value != "null" && value != "None";
  };
  const bool read = corrects("rollout_is") || corrects("rollout_rs");
  return read || in.flag(key, false) ? ToldLogProbs::told : ToldLogProbs::as_engine;
}

void note_uncounted(VerlImport& in) {
  note_switches(in, kSwitchedOn, "", false);
  for (const std::string_view block : kTraining) note_switches(in, kOfTraining, block, false);
  for (const std::string_view block : kModels) note_switches(in, kOfModels, block, false);
  note_switches(in, kSwitchedOff, "", true);
  for (const auto& [key, does] : kNumbers) {
    if (in.number(std::string(key), 0) != 0) note_uncounted(in, std::string(key), does);
  }
  const std::string frozen = "actor_rollout_ref.actor.freeze_vision_tower";
  if (in.plan().models.at("actor").spec.vision && in.flag(frozen, false)) {
    note_uncounted(in, frozen, "the tower is counted as trained: it has no gradients and states");
  }
  note_prediction_layers(in);
}

}  // namespace tessera
