// Megatron-LM's arguments for the trained roles, vLLM's and SGLang's for the rollout.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/interop/export_files.h"
#include "planner/interop/megatron_model.h"
#include "planner/plan/hub_name.h"

namespace tessera {
namespace {

using Words = std::vector<std::string>;

void put(Words& words, std::string flag, std::int64_t value) {
  words.push_back(std::move(flag));
  words.push_back(std::to_string(value));
}
void put(Words& words, std::string flag, std::string value) {
  words.push_back(std::move(flag));
  words.push_back(std::move(value));
}

Words layout_arguments(const RolePlan& role, bool moe) {
  const ParallelLayout& layout = role.layout;
  Words words;
  put(words, "--tensor-model-parallel-size", layout.tp);
  put(words, "--pipeline-model-parallel-size", layout.pp);
  put(words, "--context-parallel-size", layout.cp);
  if (layout.ep > 1) put(words, "--expert-model-parallel-size", layout.ep);
  if (moe) put(words, "--expert-tensor-parallel-size", layout.etp);  // else Megatron takes tp
  const auto layers = [&](std::size_t i) { return layout.stages[i].last - layout.stages[i].first; };
  if (layout.vpp > 1) {
    put(words, "--num-layers-per-virtual-pipeline-stage", layers(0));
  } else if (layout.pp > 1) {
    const std::size_t last = layout.stages.size() - 1;
    const std::int64_t middle = last >= 2 ? layers(1) : layers(last);
    if (layers(0) != middle) put(words, "--decoder-first-pipeline-num-layers", layers(0));
    if (last >= 2 && layers(last) != middle) {
      put(words, "--decoder-last-pipeline-num-layers", layers(last));
    }
  }
  if (layout.sequence_parallel) words.emplace_back("--sequence-parallel");
  if (layout.zero == 1) words.emplace_back("--use-distributed-optimizer");
  if (layout.dp() > 1) {  // as the prediction counts
    words.emplace_back("--overlap-grad-reduce");
    if (layout.zero == 1) words.emplace_back("--overlap-param-gather");
  }
  if (role.recompute == Recompute::selective) words.emplace_back("--recompute-activations");
  if (role.recompute == Recompute::full) {
    put(words, "--recompute-granularity", "full");
    put(words, "--recompute-method", "uniform");
    put(words, "--recompute-num-layers", std::int64_t{1});
  }
  if (role.dtypes.param == DType::bf16) words.emplace_back("--bf16");
  if (role.dtypes.param == DType::fp16) words.emplace_back("--fp16");
  return words;
}

// Sequences per micro-batch: Megatron-LM's batches are sequences of one length.
void batch_arguments(const Plan& plan, const RolePlan& role, Words& words, Export& out) {
  const Workload& work = plan.workload;
  const std::int64_t longest = work.prompt_tokens + work.response_tokens.max;
  const std::int64_t per_replica = role.batching.mini_batch / role.layout.dp();
  std::int64_t micro =
      std::clamp<std::int64_t>(role.batching.update_tokens / longest, 1, per_replica);
  while (per_replica % micro != 0) --micro;
  put(words, "--seq-length", longest);
  put(words, "--micro-batch-size", micro);
  put(words, "--global-batch-size", role.batching.mini_batch);
  if (micro * longest != role.batching.update_tokens) {
    out.notes.push_back("Megatron-LM counts micro-batches in sequences: " + std::to_string(micro) +
                        " of up to " + std::to_string(longest) + " tokens stand for the " +
                        std::string(name_of(role.role)) + "'s limit of " +
                        std::to_string(role.batching.update_tokens) + " tokens.");
  }
}

double memory_share(const Plan& plan, const RolePlan& rollout) {
  const auto found = rollout.memory.find(Phase::gen);
  const std::int64_t memory = plan.cluster.device.memory.value;
  if (found == rollout.memory.end() || memory <= 0) return 0.9;
  MemoryUse use = found->second;
  use.reserve = use.reshard = 0;
  const double share = static_cast<double>(use.total()) / static_cast<double>(memory);
  return std::clamp(std::ceil(share * 100) / 100, 0.05, 0.95);
}

std::string fraction_text(double value) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string torch_dtype(DType type) {
  return type == DType::bf16 ? "bfloat16" : type == DType::fp16 ? "float16" : "float32";
}

Words vllm_arguments(const Plan& plan, const RolePlan& rollout) {
  const ParallelLayout& layout = rollout.layout;
  Words words;
  put(words, "--tensor-parallel-size", layout.tp);
  put(words, "--pipeline-parallel-size", layout.pp);
  if (layout.ep > 1) {
    put(words, "--data-parallel-size", std::int64_t{layout.ep / layout.tp});
    words.emplace_back("--enable-expert-parallel");
  }
  put(words, "--gpu-memory-utilization", fraction_text(memory_share(plan, rollout)));
  put(words, "--max-num-seqs", rollout.batching.max_sequences);
  put(words, "--max-num-batched-tokens",
      std::max(rollout.batching.prefill_tokens, rollout.batching.max_sequences));
  put(words, "--max-model-len", plan.workload.prompt_tokens + plan.workload.response_tokens.max);
  put(words, "--dtype", torch_dtype(rollout.dtypes.param));
  words.emplace_back("--enable-prefix-caching");
  if (rollout.lora.moves_adapters()) {
    words.emplace_back("--enable-lora");
    put(words, "--max-lora-rank", rollout.lora.rank);
  }
  return words;
}

// SGLang's tensor-parallel size is all of a server's GPUs (of a stage); with data-parallel
// attention dp-size parts of them cut a sequence's attention, and slots are counted for all parts
// together (sglang/srt/server_args.py, managers/scheduler.py).
Words sglang_arguments(const Plan& plan, const RolePlan& rollout) {
  const ParallelLayout& layout = rollout.layout;
  const std::int64_t parts = layout.ep > 1 ? layout.ep / layout.tp : 1;
  Words words;
  put(words, "--tp-size", layout.tp * parts);
  put(words, "--pp-size", layout.pp);
  if (layout.ep > 1) put(words, "--ep-size", layout.ep);
  if (parts > 1) {
    put(words, "--dp-size", parts);
    words.emplace_back("--enable-dp-attention");
  }
  put(words, "--mem-fraction-static", fraction_text(memory_share(plan, rollout)));
  put(words, "--max-running-requests", rollout.batching.max_sequences * parts);
  put(words, "--max-prefill-tokens", rollout.batching.prefill_tokens);
  put(words, "--context-length", plan.workload.prompt_tokens + plan.workload.response_tokens.max);
  put(words, "--dtype", torch_dtype(rollout.dtypes.param));
  return words;
}

}  // namespace

void export_megatron(const Plan& plan, const ExportOptions& options, Export& out,
                     Problems& problems) {
  static_cast<void>(options);
  const auto environment = environment_of(plan, ExportTarget::megatron);
  for (const RolePlan& role : plan.roles) {
    if (role.role != Role::actor && role.role != Role::critic) continue;
    const JobShape shape = shape_of(plan);
    Words words = megatron_model_arguments(plan.models.at(role.model), "/models/" + role.model,
                                           out.notes, problems);
    if (plan.model_of(role.role).moe && plan.model_of(role.role).mlp_bias && role.layout.etp > 1) {
      problems.push_back({"plan", "/roles",
                          "expert tensor parallelism " + std::to_string(role.layout.etp) +
                              " of experts with biases",
                          "1", "transformer_config.py: biases of experts need it"});
    }
    const Words layout = layout_arguments(role, plan.model_of(role.role).moe.has_value());
    words.insert(words.end(), layout.begin(), layout.end());
    batch_arguments(plan, role, words, out);
    const std::string name(name_of(role.role));
    out.files.push_back(
        {name + ".sh",
         script_head(plan,
                     "Megatron-LM arguments of the " + name +
                         ". Source it and use \"${megatron_arguments[@]}\", or run it with the "
                         "training script first and its own arguments behind.") +
             export_lines(environment) + "\n" + bash_array("megatron_arguments", words) +
             "\nif [ \"${BASH_SOURCE[0]}\" = \"$0\" ]; then\n" + rendezvous_lines(shape) +
             "  exec torchrun " + torchrun_shape(shape) +
             " \\\n    \"$@\" \"${megatron_arguments[@]}\"\nfi\n",
         true});
  }
  if (out.files.empty()) {
    problems.push_back({"plan", "/roles", "no trained role", "an actor or a critic", ""});
  }
  out.notes.emplace_back(
      "Megatron-LM trains one model: the rollout, the reshard and the other roles are the "
      "caller's. "
      "Its ranks are in the order tp, cp, ep, dp, pp.");
}

namespace {

// How many servers there are, and how one that is larger than a node is started.
void note_server(const Plan& plan, const RolePlan& rollout, bool vllm, Export& out) {
  const ParallelLayout& layout = rollout.layout;
  const std::int64_t parts = layout.ep > 1 ? layout.ep / layout.tp : 1;
  const std::int64_t gpus = std::int64_t{layout.tp} * layout.pp * parts;
  const std::int64_t servers = static_cast<std::int64_t>(rollout.ranks.size()) / gpus;
  out.notes.push_back("The plan has " + std::to_string(servers) + " servers of " +
                      std::to_string(gpus) +
                      " GPUs; start serve.sh once for each, with its own port and "
                      "CUDA_VISIBLE_DEVICES." +
                      (parts > 1 ? " Experts lie over tensor x data parallel ranks of one server."
                                 : std::string()));
  const std::int64_t per_node = plan.cluster.gpus_per_node;
  if (gpus <= per_node) return;
  const std::string nodes = std::to_string((gpus + per_node - 1) / per_node);
  if (!vllm) {
    out.notes.push_back("A server spans " + nodes +
                        " nodes: start serve.sh on each with --nnodes " + nodes +
                        " --node-rank 0 (1, ...) --dist-init-addr FIRST_NODE:PORT.");
  } else if (parts > 1) {
    out.notes.push_back(
        "A server spans " + nodes +
        " nodes: start serve.sh on the first with "
        "--data-parallel-size-local " +
        std::to_string(std::max<std::int64_t>(1, per_node / layout.tp / layout.pp)) +
        " --data-parallel-address FIRST_NODE --data-parallel-rpc-port PORT, and on the others with "
        "the same, --headless and --data-parallel-start-rank.");
  } else {
    out.notes.push_back("A server spans " + nodes +
                        " nodes: start Ray on them and add --distributed-executor-backend ray.");
  }
}

}  // namespace

void export_server(const Plan& plan, ExportTarget target, const ExportOptions& options, Export& out,
                   Problems& problems) {
  const RolePlan* const rollout = plan.find(Role::rollout);
  if (rollout == nullptr) {
    problems.push_back({"plan", "/roles", "no rollout", "a rollout", ""});
    return;
  }
  const std::string model =
      options.model.empty() ? weights_of(plan.models.at(rollout->model)) : options.model;
  if (model.starts_with('-')) {
    problems.push_back({"plan", "/models/" + rollout->model, "'" + model + "'",
                        "a name that does not begin with '-'",
                        "the server would read it as an option; ./" + model + " names a folder"});
    return;
  }
  const bool vllm = target == ExportTarget::vllm;
  const Words words = vllm ? vllm_arguments(plan, *rollout) : sglang_arguments(plan, *rollout);
  const std::string command = vllm
                                  ? "exec vllm serve \"$model\" "
                                  : "exec python3 -m sglang.launch_server --model-path \"$model\" ";
  out.files.push_back(
      {"serve.sh",
       script_head(plan, "Starts one replica of the plan's rollout; arguments are further ones.") +
           export_lines(environment_of(plan, target)) +
           "\nmodel=${MODEL:-}\nif [ -z \"$model\" ]; then\n  " +
           (model.empty()
                ? ": \"${MODEL:?set it to a folder with the weights of the model, or its name on "
                  "the Hugging Face hub}\""
                : "model=" + shell_word(model)) +
           "\nfi\n" + bash_array("arguments", words) + "\n" + command +
           "\"${arguments[@]}\" \"$@\"\n",
       true});
  note_server(plan, *rollout, vllm, out);
}

}  // namespace tessera
