// Megatron-LM's arguments as a plan that only trains: an actor, with a rollout that keeps its
// layout.
#include <algorithm>
#include <array>
#include <numeric>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/config/imported.h"
#include "planner/interop/config/imported_recompute.h"
#include "planner/interop/config/stage_text.h"
#include "planner/interop/megatron/megatron.h"
#include "planner/interop/megatron/megatron_model.h"

namespace tessera {
namespace {

// Arguments that the plan is read from, or that belong to those.
constexpr std::array kFlags = std::to_array<std::string_view>({
    "tensor-model-parallel-size",
    "pipeline-model-parallel-size",
    "context-parallel-size",
    "expert-model-parallel-size",
    "expert-tensor-parallel-size",
    "num-layers-per-virtual-pipeline-stage",
    "num-virtual-stages-per-pipeline-rank",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "pipeline-model-parallel-layout",
    "sequence-parallel",
    "use-distributed-optimizer",
    "recompute-activations",
    "recompute-granularity",
    "recompute-method",
    "recompute-num-layers",
    "recompute-modules",
    "micro-batch-size",
    "global-batch-size",
    "seq-length",
    "bf16",
    "fp16",
    "nnodes",
    "nproc-per-node",
    "num-layers",
    "mtp-num-layers",
    "hidden-size",
    "num-attention-heads",
    "num-query-groups",
    "vocab-size",
    "vocab-file",
    "merge-file",
    "tokenizer-type",
    "tokenizer-model",
    "fp8-format",
    "fp8-recipe",
    "fp8-param-gather",
    "ffn-hidden-size",
    "num-experts",
    "group-query-attention",
    "kv-channels",
    "max-position-embeddings",
    "make-vocab-size-divisible-by",
    "swiglu",
    "squared-relu",
    "quick-geglu",
    "glu-linear-offset",
    "activation-func-clamp-value",
    "disable-bias-linear",
    "normalization",
    "apply-layernorm-1p",
    "position-embedding-type",
    "use-rotary-position-embeddings",
    "rotary-base",
    "rotary-percent",
    "rotary-seq-len-interpolation-factor",
    "rotary-scaling-factor",
    "use-rope-scaling",
    "rope-scaling-factor",
    "rope-type",
    "original-max-position-embeddings",
    "beta-fast",
    "beta-slow",
    "yarn-original-max-position-embeddings",
    "yarn-beta-fast",
    "yarn-beta-slow",
    "yarn-correction-range-round-to-int",
    "no-yarn-correction-range-round-to-int",
    "mscale",
    "mscale-all-dim",
    "norm-epsilon",
    "attention-dropout",
    "hidden-dropout",
    "add-qkv-bias",
    "qk-layernorm",
    "softmax-type",
    "window-size",
    "window-attn-skip-freq",
    "multi-latent-attention",
    "q-lora-rank",
    "kv-lora-rank",
    "qk-head-dim",
    "qk-pos-emb-head-dim",
    "v-head-dim",
    "moe-ffn-hidden-size",
    "moe-router-topk",
    "moe-shared-expert-intermediate-size",
    "moe-shared-expert-gate",
    "moe-layer-freq",
    "moe-router-score-function",
    "moe-router-pre-softmax",
    "moe-router-enable-expert-bias",
    "moe-router-topk-scaling-factor",
    "moe-router-num-groups",
    "moe-router-group-topk",
    "moe-grouped-gemm",
    "no-bias-dropout-fusion",
    "moe-token-dispatcher-type",
    "untie-embeddings-and-output-weights",
});

class Importer {
 public:
  Importer(const ConfigValues& config, const ImportOptions& options, Problems& problems)
      : config_(config), options_(options), problems_(problems), before_(problems.size()) {}

  std::optional<Imported> run() {
    Plan& plan = out_.plan;
    plan.engine = "megatron";
    check_flags();
    note_fp8();
    read_model();
    const Launch launch = read_launch();
    if (problems_.size() != before_) return std::nullopt;
    read_layout(launch);
    if (problems_.size() != before_) return std::nullopt;
    state_gpu_types(plan);
    validate(plan, config_.file, problems_);
    if (problems_.size() != before_) return std::nullopt;
    return std::move(out_);
  }

 private:
  std::int64_t integer(const char* flag, std::int64_t otherwise, Whole range = {1, 1 << 20}) {
    return config_.integer(flag, otherwise, problems_, range);
  }
  void refuse(const std::string& flag, std::string found, std::string expected,
              std::string hint = {}) {
    const auto value = config_.values.find(flag);
    problems_.push_back({config_.file, value == config_.values.end() ? "" : value->second.place,
                         "--" + flag + " " + std::move(found), std::move(expected),
                         std::move(hint)});
  }

  // Training scripts carry hundreds of flags that say nothing about parallelism: only what looks
  // like a misspelt one of ours is a problem.
  void check_flags() {
    std::vector<std::string> ours;
    for (const std::string_view flag : kFlags) ours.emplace_back(flag);
    std::string others;
    int count = 0;
    for (const auto& [name, value] : config_.values) {
      if (std::find(ours.begin(), ours.end(), name) != ours.end()) continue;
      const std::string hint = name.size() > 8 ? did_you_mean(name, ours) : std::string{};
      if (!hint.empty() && !options_.allow_unknown) {
        problems_.push_back(
            {config_.file, value.place, "--" + name, "an argument of Megatron-LM", hint});
      } else if (++count <= 8) {
        others += (others.empty() ? "--" : ", --") + name.substr(0, 60);
      }
    }
    if (count > 0) {
      out_.notes.push_back(std::to_string(count) + " arguments say nothing about the plan: " +
                           others + (count > 8 ? ", ..." : "") + ".");
    }
  }

  void read_model() {
    if (options_.model.empty()) return build_model();
    const auto model = find_model(options_.model, config_, "--model", out_.notes, problems_);
    if (!model) return;
    const ModelSpec& spec = model->spec;
    const auto same = [&](const char* flag, std::int64_t value) {
      const std::int64_t stated = integer(flag, value, {1, std::int64_t{1} << 40});
      if (stated != value) {
        refuse(flag, std::to_string(stated), std::to_string(value) + ", the model's");
      }
    };
    same("num-layers", spec.layers);
    same("hidden-size", spec.hidden);
    same("num-attention-heads", spec.query_heads);
    same("num-query-groups", spec.kv_heads);
    same("vocab-size", spec.vocab);
    compare_model(spec);
    out_.plan.models.emplace("actor", *model);
  }

  // An 8-bit format is of the layers' products; what a plan states, and is priced by, is 16 bit.
  void note_fp8() {
    if (!config_.has("fp8-format")) return;
    const std::string format = config_.text("fp8-format", "", problems_);
    if (format != "hybrid" && format != "e4m3") refuse("fp8-format", format, "hybrid or e4m3");
    out_.notes.push_back("--fp8-format " + format +
                         ": the layers' products run in 8 bit; plans have no such type, so their "
                         "prices are those of 16 bit.");
  }

  void build_model() {
    auto spec = megatron_model(config_, problems_);
    if (!spec) return;
    out_.notes.push_back("no --model: the architecture is built from the arguments, as " +
                         std::string(name_of(spec->family)) + ".");
    out_.plan.models.emplace("actor", ModelSource{std::move(*spec), "from arguments", ""});
  }

  // Arguments that describe a whole model, but another one.
  void compare_model(const ModelSpec& model) {
    if (!config_.has("num-layers") || !config_.has("ffn-hidden-size")) return;
    Problems unread;
    const auto stated = megatron_model(config_, unread);
    const auto others = stated ? unlike(*stated, model) : std::vector<std::string>{};
    std::string all;
    for (const std::string& other : others) all += (all.empty() ? "" : ", ") + other;
    if (!unread.empty()) all = unread[0].found + " instead of " + unread[0].expected;
    if (!all.empty()) {
      out_.notes.push_back(
          "the arguments describe another model than --model, which is taken: " + all + ".");
    }
  }

  /// Numbers that mean the same whatever the model.
  struct Launch {
    ParallelLayout layout;  // its degrees; etp as if there were experts
    std::int64_t world = 0, sequence = 0, micro_batch = 0;
    std::optional<std::int64_t> global_batch;
  };
  Launch read_launch();
  std::int64_t read_world();  // GPUs
  void read_layout(const Launch& launch);
  bool read_stages(ParallelLayout& layout, std::int64_t layers);
  bool read_stage_text(const std::string& text, ParallelLayout& layout, std::int64_t layers);

  const ConfigValues& config_;
  const ImportOptions& options_;
  Problems& problems_;
  std::size_t before_;
  Imported out_;
};

bool Importer::read_stages(ParallelLayout& layout, std::int64_t layers) {
  const std::string text = config_.text("pipeline-model-parallel-layout", "", problems_);
  if (!text.empty()) return read_stage_text(text, layout, layers);
  const std::int64_t per_chunk = integer("num-layers-per-virtual-pipeline-stage", 0);
  if (per_chunk > 0) {
    if (layers % (per_chunk * layout.pp) != 0) {
      refuse("num-layers-per-virtual-pipeline-stage", std::to_string(per_chunk),
             "a divisor of the " + std::to_string(layers) + " layers over " +
                 std::to_string(layout.pp) + " stages");
      return false;
    }
    layout.vpp = static_cast<int>(layers / per_chunk / layout.pp);
  } else {
    layout.vpp = static_cast<int>(integer("num-virtual-stages-per-pipeline-rank", 1));
  }
  const std::int64_t chunks = std::int64_t{layout.pp} * layout.vpp;
  const auto each =
      even_but_for_ends(layers, chunks, integer("decoder-first-pipeline-num-layers", 0),
                        integer("decoder-last-pipeline-num-layers", 0));
  if (!each || chunks > layers) {
    refuse("pipeline-model-parallel-size", std::to_string(layout.pp),
           "equally many of the " + std::to_string(layers) + " layers in every stage",
           "--decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers make uneven "
           "ones, or --pipeline-model-parallel-layout");
    return false;
  }
  layout.stages = stage_ranges(*each);
  return true;
}

// The text tells the number of stages, and with it how many a rank has.
bool Importer::read_stage_text(const std::string& text, ParallelLayout& layout,
                               std::int64_t layers) {
  const auto each = stage_layers(text);
  const std::int64_t stages = each ? std::ssize(*each) : 0;
  if (!each || stages % layout.pp != 0 ||
      std::accumulate(each->begin(), each->end(), std::int64_t{0}) != layers) {
    refuse("pipeline-model-parallel-layout", "'" + text + "'",
           std::to_string(layers) + " decoder layers (t) in a multiple of " +
               std::to_string(layout.pp) + " stages (|)",
           "as in 'Et*6|t*6|t*5L'");
    return false;
  }
  layout.vpp = static_cast<int>(stages / layout.pp);
  layout.stages = stage_ranges(*each);
  return true;
}

std::int64_t Importer::read_world() {
  const ClusterSpec& cluster = options_.cluster;
  if (config_.has("nproc-per-node") || config_.has("nnodes")) {
    return integer("nnodes", 1) * integer("nproc-per-node", cluster.gpus_per_node);
  }
  out_.notes.push_back("no --nproc-per-node: the plan takes all of the cluster's " +
                       std::to_string(cluster.gpus()) + " GPUs.");
  return cluster.gpus();
}

Importer::Launch Importer::read_launch() {
  Launch launch;
  ParallelLayout& layout = launch.layout;
  layout.tp = static_cast<int>(integer("tensor-model-parallel-size", 1));
  layout.pp = static_cast<int>(integer("pipeline-model-parallel-size", 1));
  layout.cp = static_cast<int>(integer("context-parallel-size", 1));
  layout.ep = static_cast<int>(integer("expert-model-parallel-size", 1));
  layout.etp = static_cast<int>(integer("expert-tensor-parallel-size", layout.tp));
  layout.sequence_parallel = config_.boolean("sequence-parallel", false, problems_);
  layout.zero = config_.boolean("use-distributed-optimizer", false, problems_) ? 1 : 0;
  launch.world = read_world();
  launch.sequence = integer("seq-length", 4096, {2, 1 << 30});
  launch.micro_batch = integer("micro-batch-size", 1, {1, 1 << 20});
  if (config_.has("global-batch-size")) {
    launch.global_batch = integer("global-batch-size", 1, {1, 1 << 30});
  }
  return launch;
}

void Importer::read_layout(const Launch& launch) {
  Plan& plan = out_.plan;
  plan.cluster = options_.cluster;
  const std::int64_t world = launch.world;
  ParallelLayout layout = launch.layout;
  if (!plan.models.at("actor").spec.moe) layout.etp = 1;
  const std::int64_t product = std::int64_t{layout.tp} * layout.pp * layout.cp;
  const ModelSource& model = plan.models.at("actor");
  if (product > world || world % product != 0 || world > plan.cluster.gpus()) {
    return refuse("tensor-model-parallel-size", std::to_string(layout.tp),
                  "tp x pp x cp = " + std::to_string(product) + " to divide " +
                      std::to_string(world) + " GPUs of the cluster's " +
                      std::to_string(plan.cluster.gpus()));
  }
  layout.dp = static_cast<int>(world / product);
  if (!read_stages(layout, model.spec.layers)) return;

  RolePlan actor;
  actor.model = "actor";
  if (const std::int64_t layers = integer("mtp-num-layers", 0, {1, 1 << 10}); layers > 0) {
    plan.models.at("actor").spec.mtp_layers = layers;
    actor.mtp = MtpUse::trained;
  }
  actor.rank_order = RankOrder::megatron;
  actor.layout = layout;
  actor.ranks.resize(static_cast<std::size_t>(world));
  std::iota(actor.ranks.begin(), actor.ranks.end(), 0);
  actor.dtypes.param = config_.boolean("fp16", false, problems_)   ? DType::fp16
                       : config_.boolean("bf16", false, problems_) ? DType::bf16
                                                                   : DType::fp32;
  const std::string mode = config_.text("recompute-granularity", "none", problems_);
  if (mode == "full") actor.recompute = Recompute::full;
  if (mode == "selective" || config_.boolean("recompute-activations", false, problems_)) {
    actor.recompute =
        selective_of(words_of(config_.find("recompute-modules")), model.spec, out_.notes);
  }
  const std::int64_t sequence = launch.sequence;
  const std::int64_t global = launch.global_batch.value_or(layout.dp);
  actor.batching.mini_batch = global;
  actor.batching.update_tokens = launch.micro_batch * sequence;

  // Megatron-LM trains and knows no calls: one training call.
  Workload& work = plan.workload;
  work.algorithm = "custom";
  work.prompts_per_step = global;
  work.prompt_tokens = sequence - 1;
  work.response_tokens = {1, 0, 1};
  work.dataflow = {{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}};
  plan.schedule = {{Phase::update_actor, Role::actor, {}}};
  plan.roles.push_back(std::move(actor));
}

}  // namespace

std::optional<Imported> import_megatron(const ConfigValues& config, const ImportOptions& options,
                                        Problems& problems) {
  return Importer(config, options, problems).run();
}

}  // namespace tessera
