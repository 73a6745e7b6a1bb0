// vLLM's and SGLang's arguments for the rollout.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cost_models/documents/problem.h"
#include "planner/interop/files/arguments.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/script.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/servers/servers.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/plan.h"
#include "planner/plan/served_memory.h"

namespace tessera {
namespace {

constexpr std::string_view kVllm = "vllm", kSglang = "sglang";

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
  put(words, "--gpu-memory-utilization",
      fraction_text(served_memory_share(plan, rollout, Phase::gen, 0.9)));
  put(words, "--max-num-seqs", rollout.batching.max_sequences);
  put(words, "--max-num-batched-tokens",
      std::max(rollout.batching.prefill_tokens, rollout.batching.max_sequences));
  put(words, "--max-model-len", longest_sequence(plan.workload));
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
  put(words, "--mem-fraction-static",
      fraction_text(served_memory_share(plan, rollout, Phase::gen, 0.9)));
  put(words, "--max-running-requests", rollout.batching.max_sequences * parts);
  put(words, "--max-prefill-tokens", rollout.batching.prefill_tokens);
  put(words, "--context-length", longest_sequence(plan.workload));
  put(words, "--dtype", torch_dtype(rollout.dtypes.param));
  return words;
}

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

void write_server(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                  Export& out, Problems& problems) {
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
  const bool vllm = target.name == kVllm;
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

ExportTarget server_target(std::string_view name, std::string_view meaning) {
  return {.name = name,
          .meaning = meaning,
          .engines = {name},
          .program = ExportedProgram::server,
          .write = write_server,
          .sleep_mode = name == kVllm};
}

}  // namespace

ExportTarget vllm_target() { return server_target(kVllm, "one vLLM server of the rollout"); }

ExportTarget sglang_target() { return server_target(kSglang, "one SGLang server of the rollout"); }

}  // namespace tessera
