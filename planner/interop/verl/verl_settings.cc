#include "planner/interop/verl/verl_settings.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/preset_algorithms.h"
#include "planner/interop/verl/prepare_model.h"
#include "planner/interop/verl/verl_writer.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"

namespace tessera {
namespace {

void write_cluster(VerlWriter& w) {
  const std::int64_t per_node = w.plan.cluster.gpus_per_node;
  const bool part = w.world() <= per_node;
  if (!part && w.world() % per_node != 0) {
    w.refuse("/roles/0/ranks", std::to_string(w.world()) + " ranks",
             "whole nodes of " + std::to_string(per_node) + " GPUs",
             "trainer.n_gpus_per_node is one number for all nodes");
  }
  w.set("trainer.nnodes", part ? std::int64_t{1} : w.world() / per_node);
  w.set("trainer.n_gpus_per_node", part ? std::int64_t{w.world()} : per_node);
  w.set("trainer.balance_batch", true, "sequences by length over the data-parallel ranks");
  w.text("trainer.project_name", w.options.project);
  w.text("trainer.experiment_name", w.options.experiment);
}

void write_data(VerlWriter& w) {
  w.known_or_asked("data.train_files", w.options.train_files, "TRAIN_FILES",
                   "the parquet file of the prompts, or [several]");
  w.known_or_asked("data.val_files", w.options.val_files, "VAL_FILES",
                   "the parquet file of the prompts for validation");
  w.set("data.train_batch_size", w.work.prompts_per_step, "prompts");
  w.set("data.max_prompt_length", w.work.longest_prompt(), "tokens");
  w.set("data.max_response_length", w.work.response_tokens.max, "tokens");
}

void write_model(VerlWriter& w) {
  const std::string prefix = "actor_rollout_ref.model";
  w.weights(prefix + ".path", w.actor.model, w.options.model, "MODEL_PATH", "the model");
  write_verl_lora(w, prefix, w.actor.lora);
  w.set("actor_rollout_ref.model.use_remove_padding", true, "packed sequences, as the plan counts");
  const MtpUse rollout = w.rollout.mtp;
  if (w.actor.mtp != MtpUse::left_out || rollout != MtpUse::left_out) {
    w.set(prefix + ".mtp.enable", true, "the model's layers of multi-token prediction");
    w.set(prefix + ".mtp.enable_train", w.actor.mtp == MtpUse::trained);
    w.set(prefix + ".mtp.enable_rollout", rollout != MtpUse::left_out);
  }
  if (w.actor.fused_loss) {
    w.set("actor_rollout_ref.model.use_fused_kernels", true, "no whole logits");
  }
  if (w.keys.engine == VerlEngine::fsdp || w.keys.engine == VerlEngine::veomni) {
    w.set("actor_rollout_ref.model.enable_gradient_checkpointing",
          w.actor.recompute == Recompute::full);
  }
  w.set("actor_rollout_ref.hybrid_engine", !w.apart,
        w.apart ? "no rollout on the actor's GPUs" : "rollout on the actor's GPUs");
}

// The preset whose calls in bypass mode these are; empty where there is none.
std::string_view bypassed_preset(const Workload& work) {
  for (const std::string_view preset : kPresetAlgorithms) {
    for (const bool model : {false, true}) {
      if (work.dataflow == bypassing(preset_dataflow(preset, work.kl, model))) return preset;
    }
  }
  return {};
}

void write_algorithm(VerlWriter& w) {
  std::string_view algorithm = w.work.algorithm;
  if (algorithm == "custom") {
    algorithm = bypassed_preset(w.work);
    if (algorithm.empty()) {
      w.refuse("/workload/algorithm", "custom", "ppo or grpo, or their calls without old_log_prob",
               "verl's dataflow is its own");
    }
    w.set("algorithm.rollout_correction.bypass_mode", true,
          "generation's log-probs are the old ones");
  }
  w.text("algorithm.adv_estimator", algorithm == "grpo" ? "grpo" : "gae");
  w.set("algorithm.use_kl_in_reward", w.work.kl == KlPlace::reward);
}

}  // namespace

std::string_view verl_dtype(DType type) {
  switch (type) {
    case DType::bf16:
      return "bfloat16";
    case DType::fp16:
      return "float16";
    default:
      return "float32";
  }
}

void VerlWriter::refuse(std::string place, std::string found, std::string expected,
                        std::string hint) {
  problems.push_back(
      {"plan", std::move(place), std::move(found), std::move(expected), std::move(hint)});
}

void VerlWriter::known_or_asked(std::string key, const std::string& value, const char* variable,
                                std::string what) {
  if (!value.empty()) return text(std::move(key), value);
  set(key, std::string_view("${oc.env:" + std::string(variable) + "}"), "of the environment");
  out.variables.push_back({std::move(key), variable, std::move(what)});
}

void VerlWriter::weights(std::string key, const std::string& model, const std::string& stated,
                         const char* variable, const std::string& whose) {
  const ModelSource& source = plan.models.at(model);
  const std::string known = weights_of(source);
  std::string value = stated.empty() ? known : stated;
  std::string what = "a folder with the weights of " + whose;
  if (has_quantized_weights(source)) {
    // The sentence stands in quotes of a shell: only a plain name can be part of it.
    const bool plain = !known.empty() && shell_word(known) == known;
    const bool mtp = actor.mtp != MtpUse::left_out || rollout.mtp != MtpUse::left_out;
    // mbridge dequantizes those of DeepSeek-V3, and Kimi K2 is one, as it loads them.
    const bool links = megatron && source.spec.mla && source.spec.moe && !source.spec.indexer;
    what += " that is prepared for verl: `python3 " + std::string(kPrepareModel) + " " +
            (plain ? known : "FOLDER") + " NEW_FOLDER" + (mtp ? " --with-mtp" : "") +
            (links ? "" : " --dequantize-fp8") + "` makes it";
    if (stated.empty()) value.clear();
    out.quantized = true;
  } else {
    what += ", or its name on the Hugging Face hub";
  }
  known_or_asked(std::move(key), value, variable, std::move(what));
}

void VerlWriter::text(std::string key, std::string_view value, std::string comment) {
  check_name(key, value);
  set(std::move(key), value, std::move(comment));
}

void VerlWriter::check_name(const std::string& key, std::string_view value) {
  if (value.find("${") != value.npos) {
    refuse(key, "'${' in a name", "a name without it", "OmegaConf would interpolate it");
  }
  const bool printable = std::none_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (!printable) refuse(key, "a control character in a name", "printable characters", "");
}

std::int64_t VerlWriter::per_gpu(const RolePlan& role, std::int64_t tokens, const char* field) {
  const std::int64_t longest = longest_sequence(work);
  const std::string place = "/roles/" + std::string(name_of(role.role)) + "/batching/" + field;
  if (tokens < longest) {
    refuse(place, std::to_string(tokens),
           "at least one longest sequence, " + std::to_string(longest) + " tokens",
           "verl never cuts a sequence");
  }
  const std::int64_t ranks = ranks_of_limit(keys.engine, role.layout);
  if (tokens % ranks != 0) {
    note(std::string(name_of(role.role)) + "." + field + " = " + std::to_string(tokens) +
         " is no multiple of the " + std::to_string(ranks) +
         " ranks that verl multiplies a limit by; the limit per GPU is rounded up, so that a "
         "longest sequence fits.");
  }
  return (tokens + ranks - 1) / ranks;
}

VerlSettings verl_settings(const Plan& plan, const VerlOptions& options, Problems& problems) {
  if (plan.find(Role::actor) == nullptr || plan.find(Role::rollout) == nullptr) {
    problems.push_back(
        {"plan", "/roles", "no actor or no rollout", "both", "verl trains with both"});
    return {};
  }
  VerlWriter w{.plan = plan, .options = options, .problems = problems};
  w.apart = is_one_step_off(plan.schedule);
  write_cluster(w);
  write_data(w);
  write_model(w);
  write_verl_actor(w);
  write_verl_reference(w);
  write_verl_serving(w);
  write_algorithm(w);
  write_verl_critic(w);
  note_verl_limits(w);
  return std::move(w.out);
}

}  // namespace tessera
