// What verl 0.9.1 itself stops at, and a plan can do without: such a script has a price, and notes
// that say why it does not run. And what it runs otherwise than a plan counts.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/spec_document.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_import.h"

namespace tessera {
namespace {

const std::string kRollout = "actor_rollout_ref.rollout";

// trainer/ppo/core_algos.py, AdvantageEstimator.
constexpr std::array<std::string_view, 14> kEstimators{"gae",
                                                       "grpo",
                                                       "reinforce_plus_plus",
                                                       "reinforce_plus_plus_baseline",
                                                       "remax",
                                                       "rloo",
                                                       "opo",
                                                       "grpo_passk",
                                                       "gpg",
                                                       "rloo_vectorized",
                                                       "grpo_vectorized",
                                                       "optimal_token_baseline",
                                                       "tir_optimal_token_baseline",
                                                       "gdpo"};

void check_estimator(VerlImport& in) {
  const std::string key = "algorithm.adv_estimator", name = in.text(key, "gae");
  if (std::find(kEstimators.begin(), kEstimators.end(), name) != kEstimators.end()) return;
  std::string known;
  for (const std::string_view each : kEstimators) {
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  const std::string near =
      did_you_mean(name, std::vector<std::string>(kEstimators.begin(), kEstimators.end()));
  in.note_stop(key, name, known + (near.empty() ? "" : " (" + near + ")"),
               "a ValueError, unless code of your own registers the name");
}

// engine_workers.py, workers/config/actor.py.
void check_batches(VerlImport& in) {
  const bool dynamic = in.flag("actor_rollout_ref.actor.use_dynamic_bsz", false);
  const std::string key = kRollout + ".log_prob_use_dynamic_bsz";
  if (in.flag(key, dynamic) != dynamic) {
    in.note_stop(key, dynamic ? "false" : "true",
                 std::string(dynamic ? "true" : "false") +
                     ", as actor_rollout_ref.actor.use_dynamic_bsz has it",
                 "an assertion of engine_workers.py");
  }
  const std::string padding = "actor_rollout_ref.model.use_remove_padding";
  if (in.config.engine == VerlEngine::fsdp && in.plan().find(Role::actor)->layout.cp > 1 &&
      !in.flag(padding, true)) {
    in.note_stop(padding, "false", "true with Ulysses' sequence parallelism",
                 "a ValueError of the actor's configuration");
  }
}

// workers/config/rollout.py; the servers' own checks of max_model_len.
void check_rollout(VerlImport& in) {
  const std::string name = in.text(kRollout + ".name", "vllm");
  if (name != "vllm" && name != "sglang" && name != "trtllm") {
    in.note_stop(kRollout + ".name", name, "vllm, sglang or trtllm", "no such rollout");
  }
  if (in.text(kRollout + ".mode", "async") == "sync") {
    in.note_stop(kRollout + ".mode", "sync", "async",
                 "a ValueError of the rollout's configuration");
  }
  const std::string key = kRollout + ".max_model_len";
  const std::int64_t positions = context_length(in.plan().models.at("actor").spec);
  const std::int64_t most = in.integer(key, in.longest());
  const std::int64_t prompt = in.work().longest_prompt();
  if (most <= prompt) {
    in.note_stop(key, std::to_string(most),
                 "more than data.max_prompt_length, " + std::to_string(prompt),
                 "a ValueError at the first prompt that leaves no room");
  } else if (most < in.longest()) {
    in.note(key + " = " + std::to_string(most) +
            " ends sequences below the prompt and response of " + std::to_string(in.longest()) +
            " tokens that the plan counts.");
  }
  if (positions > 0 && most > positions && in.config.find(key) != nullptr) {
    in.note_stop(key, std::to_string(most),
                 "at most the actor's " + std::to_string(positions) + " positions",
                 "a ValueError of the server");
  } else if (positions > 0 && in.longest() > positions) {
    in.note("prompt and response of " + std::to_string(in.longest()) +
            " tokens are longer than the actor's " + std::to_string(positions) +
            " positions: inference engines refuse it.");
  }
}

struct Choice {
  std::string key;
  std::vector<std::string_view> known;
  const char* where;  // the error that verl raises
};

// The value that the file states; nullptr where it is silent or only a run would tell.
const Node* stated(const VerlImport& in, const std::string& key) {
  const auto value = in.config.values.find(key);
  if (value == in.config.values.end() || !value->second.unknown.empty()) return nullptr;
  if (value->second.value.is(Node::Kind::null)) return &value->second.value;
  const Node* const node = in.config.find(key);
  return node == nullptr || node->refused ? nullptr : node;
}

// verl's own defaults are all known. `no_null`: null is not one of them.
void check_choice(VerlImport& in, const Choice& choice, bool no_null = false) {
  const Node* const node = stated(in, choice.key);
  if (node == nullptr || (node->is(Node::Kind::null) && !no_null)) return;
  const std::string found = node->is(Node::Kind::string) ? node->text : describe(*node);
  if (std::find(choice.known.begin(), choice.known.end(), found) != choice.known.end()) return;
  std::string known;
  for (const std::string_view each : choice.known) {
    known += (known.empty() ? "" : each == choice.known.back() ? " or " : ", ") + std::string(each);
  }
  in.note_stop(choice.key, found, known, choice.where);
}

// utils/torch_dtypes.py, PrecisionType; vLLM's --dtype; workers/config/actor.py and engine.py.
void check_choices(VerlImport& in) {
  const bool critic = in.plan().find(Role::critic) != nullptr;
  const VerlEngine engine = in.config.engine;
  const std::string actor = "actor_rollout_ref.actor";
  const std::vector<std::string_view> types = {"16",   "fp16",    "float16", "32",
                                               "fp32", "float32", "bf16",    "bfloat16"};
  const char* const precision = "a RuntimeError of utils/torch_dtypes.py";
  if (engine == VerlEngine::fsdp) {
    check_choice(in, {actor + ".fsdp_config.model_dtype", types, precision});
    check_choice(in, {"actor_rollout_ref.ref.fsdp_config.model_dtype", types, precision});
    if (critic) check_choice(in, {"critic.fsdp.model_dtype", types, precision});
  }
  check_choice(in, {kRollout + ".dtype",
                    {"auto", "half", "float16", "bfloat16", "float", "float32"},
                    "an error of the server"});
  const std::vector<std::string_view> strategies =
      engine == VerlEngine::fsdp ? std::vector<std::string_view>{"fsdp", "fsdp2", "fsdp_turbo"}
                                 : std::vector<std::string_view>{keys_of(engine).strategy};
  const char* const unknown = "no such engine";
  check_choice(in, {actor + ".strategy", strategies, unknown}, true);
  if (critic) check_choice(in, {"critic.strategy", strategies, unknown}, true);
  const std::vector<std::string_view> sums = {"token-mean", "token-sum", "seq-mean-token-sum",
                                              "seq-mean-token-mean", "seq-mean-token-sum-norm"};
  check_choice(in, {actor + ".loss_agg_mode", sums, "a ValueError of the actor's configuration"},
               true);
  check_choice(in, {kRollout + ".quantization",
                    {"fp8", "torchao", "ascend"},
                    "a ValueError of vllm_async_server.py"});
}

// What a server then does otherwise than the plan counts.
void note_serving(VerlImport& in) {
  for (const std::string& block : {kRollout, std::string("reward.reward_model.rollout")}) {
    if (block != kRollout && in.plan().find(Role::reward) == nullptr) continue;
    const Node* const eager = stated(in, block + ".enforce_eager");
    if (eager != nullptr && eager->is(Node::Kind::boolean) && eager->boolean) {
      in.note(block +
              ".enforce_eager = true is not priced: the prediction counts decoding by CUDA graphs, "
              "without which every step waits for its launches.");
    }
    const Node* const type = stated(in, block + ".quantization");
    if (type == nullptr || !type->is(Node::Kind::string)) continue;
    const std::string quantized = type->text.substr(0, 80);
    in.note(block + ".quantization = " + quantized +
            " is not priced: the plan counts the server's weights and products in " + block +
            ".dtype.");
  }
}

// trainer_separate_async.py.
void check_separate_async(VerlImport& in) {
  if (in.config.trainer != VerlTrainer::main_ppo ||
      in.text("trainer.v1.trainer_mode", "sync") != "separate_async") {
    return;
  }
  const std::string key = kRollout + ".checkpoint_engine.backend";
  if (in.text(key, "naive") == "naive") {
    in.note_stop(key, "naive", "nccl or another backend between pools",
                 "an assertion of trainer.v1.trainer_mode=separate_async");
  }
  const std::string pool = "reward.reward_model.enable_resource_pool";
  if (in.plan().find(Role::reward) != nullptr && !in.flag(pool, false)) {
    in.note_stop(pool, "false", "true beside a rollout on GPUs of its own",
                 "an assertion of trainer.v1.trainer_mode=separate_async");
  }
}

}  // namespace

void VerlImport::note_stop(const std::string& key, const std::string& found,
                           const std::string& expected, const std::string& where) {
  note("verl 0.9.1 does not run this: " + key + " = " + found.substr(0, 80) + ", expected " +
       expected + " (" + where + ").");
}

void note_stops(VerlImport& in) {
  check_estimator(in);
  check_batches(in);
  check_rollout(in);
  check_choices(in);
  note_serving(in);
  check_separate_async(in);
}

}  // namespace tessera
