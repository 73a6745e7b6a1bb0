// vLLM's and SGLang's engine arguments as a plan that only generates: one server's rollout.
//
// Names and defaults of vLLM 0.24's EngineArgs and SGLang 0.5.12's ServerArgs.
#include <algorithm>
#include <array>
#include <numeric>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/config/imported.h"
#include "planner/interop/servers/server_flags.h"
#include "planner/interop/servers/servers.h"

namespace tessera {
namespace {

/// Names of one argument: vLLM's, then SGLang's with its short form.
struct Argument {
  const char *vllm, *sglang, *brief;
};
constexpr Argument kModel{"model", "model-path", "model"};
constexpr Argument kTp{"tensor-parallel-size", "tp-size", "tp"};  // vLLM too has -tp, -pp, -dp
constexpr Argument kPp{"pipeline-parallel-size", "pp-size", "pp"};
constexpr Argument kDp{"data-parallel-size", "dp-size", "dp"};
constexpr Argument kSequences{"max-num-seqs", "max-running-requests", ""};
constexpr Argument kPrefill{"max-num-batched-tokens", "max-prefill-tokens", ""};
constexpr Argument kLength{"max-model-len", "context-length", ""};
constexpr Argument kShare{"gpu-memory-utilization", "mem-fraction-static", ""};

// Of vLLM's CacheConfig; SGLang works its own out from the GPU's memory, 0.85 to 0.9 on 80 GB.
constexpr double kVllmShare = 0.9, kSglangShare = 0.88;

class Importer {
 public:
  Importer(const ConfigValues& config, const ImportOptions& options, Problems& problems)
      : config_(config),
        options_(options),
        problems_(problems),
        before_(problems.size()),
        vllm_(config.syntax == ConfigSyntax::vllm) {}

  std::optional<Imported> run() {
    Plan& plan = out_.plan;
    plan.engine = vllm_ ? "vllm" : "sglang";
    plan.cluster = options_.cluster;
    check_flags();
    read_model();
    if (problems_.size() != before_) return std::nullopt;
    read_layout();
    if (problems_.size() != before_) return std::nullopt;
    read_batches();
    if (problems_.size() != before_) return std::nullopt;
    state_gpu_types(plan);
    validate(plan, config_.file, problems_);
    if (problems_.size() != before_) return std::nullopt;
    return std::move(out_);
  }

 private:
  /// The key under which the file states an argument, or the tool's own name of it.
  std::string key_of(const Argument& argument) const {
    for (const char* name : {vllm_ ? argument.vllm : argument.sglang, argument.brief, argument.vllm,
                             argument.sglang}) {
      if (*name != '\0' && config_.has(name)) return name;
    }
    return vllm_ ? argument.vllm : argument.sglang;
  }
  std::int64_t integer(const Argument& argument, std::int64_t otherwise,
                       Whole range = {1, 1 << 20}) {
    return config_.integer(key_of(argument), otherwise, problems_, range);
  }
  void refuse(const Argument& argument, std::string found, std::string expected,
              std::string hint = {}) {
    const std::string key = key_of(argument);
    const auto value = config_.values.find(key);
    problems_.push_back({config_.file, value == config_.values.end() ? "" : value->second.place,
                         "--" + key + " " + std::move(found), std::move(expected),
                         std::move(hint)});
  }

  void check_flags() {
    for (Problem& problem : unknown_flags(config_)) {
      if (!options_.allow_unknown) {
        problems_.push_back(std::move(problem));
      } else {
        out_.notes.push_back(problem.found +
                             " is no argument that the planner knows; it changes "
                             "nothing in the plan (" +
                             problem.hint + ").");
      }
    }
    for (const char* const flag : {"quantization", "cpu-offload-gb", "kv-cache-dtype",
                                   "speculative-config", "speculative-algorithm"}) {
      if (!config_.has(flag)) continue;
      const Node* const value = config_.find(flag);
      if (value != nullptr && value->text == "auto") continue;
      out_.notes.push_back("--" + std::string(flag) +
                           " is not counted: weights and cache are "
                           "planned in the model's type, on the GPU.");
    }
  }

  /// The share of a GPU's memory that weights, cache and workspace may take.
  double memory_share() {
    const double otherwise = vllm_ ? kVllmShare : kSglangShare;
    const Node* const node = config_.find(key_of(kShare));
    if (node == nullptr) return otherwise;
    const bool numeric = node->is(Node::Kind::number) || node->is(Node::Kind::integer);
    if (numeric && node->number > 0 && node->number <= 1) return node->number;
    refuse(kShare, numeric ? std::to_string(node->number) : "'" + node->text + "'",
           "a share of a GPU's memory, above 0 and at most 1");
    return otherwise;
  }

  void read_model() {
    const std::string name =
        options_.model.empty() ? config_.text(key_of(kModel), "", problems_) : options_.model;
    if (name.empty()) {
      if (problems_.size() == before_) refuse(kModel, "without a model", "--model FOLDER");
      return;
    }
    const auto model = find_model(name, config_, key_of(kModel), out_.notes, problems_);
    if (model) out_.plan.models.emplace("actor", *model);
  }

  /// Parts of a SGLang server that cut attention on their own; 1 = no data-parallel attention.
  std::int64_t attention_parts() {
    const bool parts = !vllm_ && config_.boolean("enable-dp-attention", false, problems_);
    return parts ? integer(kDp, 1) : 1;
  }

  void read_layout() {
    const ModelSpec& model = out_.plan.models.at("actor").spec;
    RolePlan rollout;
    rollout.role = Role::rollout;
    rollout.model = "actor";
    ParallelLayout& layout = rollout.layout;
    layout.tp = static_cast<int>(integer(kTp, 1));
    layout.pp = static_cast<int>(integer(kPp, 1));
    layout.dp = static_cast<int>(integer(kDp, 1));
    const int gpus = layout.tp;  // SGLang: of one server and stage
    if (attention_parts() > 1) {
      if (layout.tp % layout.dp != 0) {
        return refuse(kDp, std::to_string(layout.dp),
                      "a divisor of the tensor-parallel size " + std::to_string(layout.tp),
                      "--enable-dp-attention cuts its GPUs into so many parts");
      }
      layout.tp /= layout.dp;
    }
    const bool experts = vllm_ ? config_.boolean("enable-expert-parallel", false, problems_)
                               : config_.integer("ep-size", 1, problems_, {1, 1 << 20}) > 1;
    // vLLM's experts lie over data-parallel ranks, too.
    const int expert_gpus = vllm_ ? layout.tp * layout.dp : gpus;
    if (experts) {
      layout.ep = expert_gpus;
    } else if (model.moe) {  // every expert is cut
      layout.etp = expert_gpus;
    }
    const std::int64_t ranks = std::int64_t{layout.tp} * layout.pp * layout.dp;
    if (ranks > out_.plan.cluster.gpus()) {
      return refuse(kTp, std::to_string(layout.tp),
                    "tp x pp x dp = " + std::to_string(ranks) + " of the cluster's " +
                        std::to_string(out_.plan.cluster.gpus()) + " GPUs");
    }
    if (layout.pp > model.layers) {
      return refuse(kPp, std::to_string(layout.pp),
                    "at most the model's " + std::to_string(model.layers) + " layers");
    }
    layout.stages = even_stages(model.layers, layout.pp);
    rollout.ranks.resize(static_cast<std::size_t>(ranks));
    std::iota(rollout.ranks.begin(), rollout.ranks.end(), 0);
    const std::string dtype = config_.text("dtype", "auto", problems_);
    rollout.dtypes.param = dtype == "float16" || dtype == "half"    ? DType::fp16
                           : dtype == "float32" || dtype == "float" ? DType::fp32
                           : dtype == "bfloat16" || dtype == "bf16" ? DType::bf16
                                                                    : model.dtype;
    rollout.dtypes.kv = rollout.dtypes.wire = rollout.dtypes.param;
    out_.memory_share = memory_share();
    if (config_.boolean("enable-lora", false, problems_)) {
      rollout.lora.rank = config_.integer("max-lora-rank", 16, problems_, {1, 1 << 16});
    }
    out_.plan.roles.push_back(std::move(rollout));
  }

  // A server knows no steps: one step is a full batch.
  void read_batches() {
    Plan& plan = out_.plan;
    RolePlan& rollout = plan.roles.front();
    const std::int64_t positions = context_length(plan.models.at("actor").spec);
    const std::int64_t length =
        integer(kLength, std::max<std::int64_t>(2, positions), {2, std::int64_t{1} << 30});
    const std::int64_t sequences =
        std::max<std::int64_t>(1, integer(kSequences, 256) / attention_parts());  // of one part
    rollout.batching.max_sequences = sequences;
    rollout.batching.prefill_tokens =
        integer(kPrefill, vllm_ ? 8192 : 16384, {1, std::int64_t{1} << 30});
    Workload& work = plan.workload;
    work.algorithm = "custom";
    work.prompts_per_step = sequences * rollout.layout.dp;
    work.prompt_tokens = length / 2;
    work.response_tokens = response_lengths(options_, length - length / 2, out_.notes, problems_);
    work.dataflow = {{Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"responses"}}};
    plan.schedule = {{Phase::gen, Role::rollout, {}}};
    out_.notes.push_back("a step is one full batch of sequences of at most " +
                         std::to_string(length) +
                         " tokens, half of them prompt; the cache is what --" + key_of(kShare) +
                         " leaves beside the weights, and as many sequences are decoded at once as "
                         "it holds.");
  }

  const ConfigValues& config_;
  const ImportOptions& options_;
  Problems& problems_;
  std::size_t before_;
  bool vllm_;
  Imported out_;
};

}  // namespace

std::optional<Imported> import_server(const ConfigValues& config, const ImportOptions& options,
                                      Problems& problems) {
  return Importer(config, options, problems).run();
}

}  // namespace tessera
