#include "planner/sweep/price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/compute.h"
#include "cost_models/spec/node_groups.h"
#include "planner/search/evaluate.h"
#include "planner/search/fixed.h"
#include "planner/search/space.h"
#include "planner/sweep/completions.h"

namespace tessera {
namespace {

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

std::string in_gib(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", bytes / (1LL << 30));
  return text.data();
}

void append(std::string& text, const std::string& more) {
  if (more.empty()) return;
  text += (text.empty() ? "" : "; ") + more;
}

Dataflow dataflow_of(SweepKind kind) {
  const Call gen{Phase::gen, Role::actor, CallKind::generate, {"prompts"}, {"responses"}};
  const Call score{Phase::old_log_prob, Role::actor, CallKind::infer, {"prompts"}, {"old"}};
  const Call update{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}};
  switch (kind) {
    case SweepKind::train:
      return {update};
    case SweepKind::logprob:
      return {score};
    case SweepKind::rollout:
      return {gen};
    case SweepKind::iteration:
      break;
  }
  return {gen, score, update};
}

// Lengths that the row leaves open, and how they were filled.
struct Lengths {
  double prompt = 0, response = 0, cv = 0;
  std::int64_t max = 0;
  std::string assumed;
};

Lengths lengths_of(const SweepRow& row) {
  Lengths lengths;
  lengths.prompt = row.prompt_tokens.value_or(0);
  const bool trains = row.kind == SweepKind::train || row.kind == SweepKind::logprob;
  constexpr double kTokens = 512;
  if (row.response_tokens) {
    lengths.response = *row.response_tokens;
  } else if (row.max_response_tokens) {
    constexpr double kMeanOfMax = 0.125;  // reasoning runs stay far below their limit on average
    lengths.response = kMeanOfMax * static_cast<double>(*row.max_response_tokens);
    lengths.assumed = "response_tokens assumed an eighth of max_response_tokens";
  } else if (!trains) {
    lengths.response = kTokens;
    lengths.assumed = "response_tokens assumed 512";
  }
  if (!row.prompt_tokens && !(trains && lengths.response > 0 && row.response_tokens)) {
    lengths.prompt = kTokens;
    append(lengths.assumed, "prompt_tokens assumed 512");
  }
  // Without a response every position is scored: pre-training.
  if (trains && lengths.response <= 0) {
    lengths.response = lengths.prompt;
    lengths.prompt = 0;
  }
  lengths.max = std::max(row.max_response_tokens.value_or(0),
                         static_cast<std::int64_t>(std::llround(lengths.response)));
  constexpr double kSpread = 0.5;  // as configs/workloads: a mean below its limit has a tail
  if (static_cast<double>(lengths.max) > 1.5 * lengths.response) lengths.cv = kSpread;
  return lengths;
}

// What a row says against itself or its model: "column: found, expected" for each, joined.
std::string contradictions(const SweepRow& row, const ModelSpec& model, std::int64_t per_node) {
  std::string text;
  const auto refuse = [&](const char* column, double found, const std::string& expected) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.9g", found);
    append(text, std::string(column) + ": found " + number.data() + ", expected " + expected);
  };
  const std::int64_t experts = model.moe ? model.moe->experts : 1;
  const auto check_experts = [&](const char* column, const SweepRow::Count& degree) {
    if (degree.value_or(1) <= experts) return;
    refuse(column, static_cast<double>(*degree),
           experts > 1 ? "at most the model's " + std::to_string(experts) + " experts"
                       : "1, for the model has no experts");
  };
  check_experts("ep", row.ep);
  check_experts("gen_ep", row.gen_ep);
  // Over nodes tp takes them whole: as many of a group's ranks on each.
  const auto check_tensor = [&](const char* column, const SweepRow::Count& degree) {
    const std::int64_t tp = degree.value_or(1);
    if (tp <= per_node || tp % per_node == 0) return;
    refuse(column, static_cast<double>(tp),
           "at most the " + std::to_string(per_node) + " GPUs of a node, or those of whole nodes");
  };
  check_tensor("tp", row.tp);
  check_tensor("gen_tp", row.gen_tp);
  const SweepRow::Count& batch = row.mini_batch ? row.mini_batch : row.global_batch;
  if (row.kind != SweepKind::rollout && row.dp && batch && *row.dp > *batch) {
    refuse("dp", static_cast<double>(*row.dp),
           "at most the " + std::to_string(*batch) + " sequences of a batch, one for each replica");
  }
  const bool generates = row.kind == SweepKind::rollout || row.kind == SweepKind::iteration;
  if (generates && row.response_tokens == 0.0) {
    refuse("response_tokens", 0, "at least 1 token in a row that generates");
  }
  if (row.max_response_tokens && row.response_tokens &&
      static_cast<double>(*row.max_response_tokens) < *row.response_tokens) {
    refuse("max_response_tokens", static_cast<double>(*row.max_response_tokens),
           "at least the mean, response_tokens");
  }
  if (row.mini_batch && row.global_batch && *row.global_batch % *row.mini_batch != 0) {
    refuse("mini_batch", static_cast<double>(*row.mini_batch),
           "a divisor of global_batch = " + std::to_string(*row.global_batch));
  }
  return text;
}

// A row that leaves its number of GPUs open, with `scale` times the fewest that its degrees need;
// nullopt where nothing is open or the cluster has no more.
std::optional<SweepRow> with_gpus(const SweepRow& row, const ClusterSpec& cluster,
                                  std::int64_t scale) {
  const bool generates = row.kind == SweepKind::rollout || row.kind == SweepKind::iteration;
  const bool trains = row.kind != SweepKind::rollout;
  const bool plain = !trains && !row.gen_tp && !row.gen_pp && !row.gen_dp;
  const auto &gen_tp = plain ? row.tp : row.gen_tp, &gen_pp = plain ? row.pp : row.gen_pp,
             &gen_dp = plain ? row.dp : row.gen_dp;
  const bool open_train = trains && !row.gpus && !row.train_gpus && !(row.tp && row.pp && row.dp);
  const bool open_gen = generates && !row.gpus && !row.gen_gpus && !(gen_tp && gen_dp);
  if (!open_train && !open_gen) return std::nullopt;
  SweepRow made = row;
  if (open_train) {
    made.train_gpus =
        scale * row.tp.value_or(1) * row.pp.value_or(1) * row.dp.value_or(1) * row.cp.value_or(1);
  }
  if (open_gen) {
    made.gen_gpus = scale * gen_tp.value_or(1) * gen_pp.value_or(1) * gen_dp.value_or(1);
  }
  const std::int64_t most =
      std::max(open_train ? *made.train_gpus : 0, open_gen ? *made.gen_gpus : 0);
  if (scale > 1 && most > cluster.gpus()) return std::nullopt;
  return made;
}

// Flash attention came with engines that overlap communication; before, Megatron-LM overlapped
// nothing, kept dropout's masks and all rows of logits (Narayanan et al. 2021, Korthikanti et al.
// 2022). Experts across nodes: published runs dispatch hierarchically and, under a pipeline, beside
// other micro-batches (DeepSeek-V3, Megatron-Bridge's recipes); the row's columns say otherwise.
ExpertOverlap expert_overlap_of(const SweepRow& row) {
  if (!row.expert_overlap) return ExpertOverlap::across_nodes;
  return *row.expert_overlap ? ExpertOverlap::always : ExpertOverlap::none;
}

// ZeRO-2 and 3 in 16 bit are torch's FSDP or DeepSpeed: alone on torch's own kernels; beside tensor
// parallelism or a pipeline compiled or of a kernel library's make (torchtitan, Llama 3's trainer).
bool shards_of_torch(const SweepRow& row) {
  return row.engine.empty() && row.zero.value_or(0) >= 2 && row.precision != SweepPrecision::fp8 &&
         row.attention != SweepAttention::unfused;
}

bool eager(const SweepRow& row) {
  return shards_of_torch(row) && row.attention != SweepAttention::flash_3 && !row.compiled &&
         row.tp.value_or(1) == 1 && row.pp.value_or(1) == 1;
}

// Experts of such rows: NeMo AutoModel and torchtitan dispatch by DeepEP.
bool merges_dispatch(const SweepRow& row) {
  return row.expert_dispatch ? *row.expert_dispatch == ExpertDispatch::hierarchical
                             : shards_of_torch(row);
}

// torch's own attention is FlashAttention 2 (scaled_dot_product_attention of torch 2.2 to 2.4).
SweepAttention attention_of(const SweepRow& row) {
  return row.attention == SweepAttention::flash && (eager(row) || row.compiled)
             ? SweepAttention::flash_2
             : row.attention;
}

// FSDP's models use flash-attn's loss (llm-foundry's default) or torch.compile's; NeMo and
// Megatron-Bridge, who call attention by Transformer Engine, also its cross entropy.
LossKernel loss_of(const SweepRow& row) {
  if (row.loss) return *row.loss;
  if (row.attention == SweepAttention::flash_3) return LossKernel::in_place;
  return shards_of_torch(row) ? LossKernel::fused : LossKernel::vocab_parallel;
}

// Products of 2,048 rows and more in fp8 take 1 / 1.87 of their time in bf16 beside the casts on
// H100 (1.86 on H200, 2.0 on B200; 4,508 shapes each, 2.6 % median error): aiconfigurator-core
// 1.3's tables of TensorRT-LLM, Apache-2.0.
double product_speed(const SweepRow& row) {
  return row.precision == SweepPrecision::fp8 ? 1.87 : 1.0;
}

EngineTraits traits_of_row(const SweepRow& row) {
  const bool keeps = !row.reshard_after_forward.value_or(true);
  if (!row.engine.empty()) {
    EngineTraits traits = traits_of(row.engine);
    traits.keeps_gathered = keeps;
    return traits;
  }
  const bool flash = row.attention != SweepAttention::unfused;
  return {
      .flash_attention = flash,
      .dropout = !flash,
      .logit_rows = 0,
      .overlapped_gradients = flash,
      .overlapped_replicas = flash,
      .overlapped_parameters = flash,
      .overlapped_shards = flash,
      .streamed_optimizer = true,
      .keeps_gathered = keeps,
      .scattered_hops = true,
      .master_parameters = shards_of_torch(row),
      .listed_shards = !flash,
      .expert_dispatch = row.expert_dispatch.value_or(ExpertDispatch::hierarchical),
      .expert_overlap = expert_overlap_of(row),
      .synchronized_routing = true,
      .overlapped_hops = flash,
      // DeepSpeed of 2021 kept and reduced gradients in 16 bit (Rajbhandari et al. 2020, sec. 3.1).
      .narrow_gradients = row.narrow_gradients || (!flash && row.zero.value_or(0) == 3),
      .overlapped_tensor = row.tp_overlap.value_or(false),
      .loss = loss_of(row),
      .eager_elementwise = eager(row),
      .remade_elementwise = shards_of_torch(row) && !eager(row),
      .merged_dispatch = merges_dispatch(row),
      .eager_expert_bias = !shards_of_torch(row),
      .product_speed = product_speed(row),
      .graphed_decode = true};
}

// Tables of attention kernels hold the device's best (FlashAttention 2 on Ampere, 3 or cuDNN's on
// Hopper and later). Older generations take longer by: 2 over cuDNN's on H200 311 / 614 forward,
// 282 / 533 forward and backward (torch 2.11, 8k); 1 over 2 on A100 1.7 to 3.0 (Dao 2023,
// arXiv:2307.08691, sec. 4.1).
Calibration for_attention(Calibration calibration, SweepAttention attention,
                          const DeviceSpec& device) {
  constexpr double kSecondOverBest = 1.9, kFirstOverSecond = 1.8, kHopperFlops = 700e12;
  double longer = 1;
  const bool old = attention == SweepAttention::flash_1 || attention == SweepAttention::flash_2;
  if (old && device.peak_bf16.value > kHopperFlops) longer *= kSecondOverBest;
  if (attention == SweepAttention::flash_1) longer *= kFirstOverSecond;
  if (old) calibration.narrow_heads.value = 1;  // as on L40S, whose best kernels are of that kind
  for (double& ratio : calibration.prefill.ratio) ratio *= longer;
  return calibration;
}

// A completion with what it costs.
struct Priced {
  Candidate candidate;
  RoleCost cost;
  double seconds = 0;
  std::string chosen;
};

// What two roles on the same ranks need at once; one role needs its own peak.
std::int64_t peak_together(const RoleCost* actor, const RoleCost* rollout) {
  if (actor == nullptr) return rollout->peak;
  if (rollout == nullptr) return actor->peak;
  return std::max({actor->peak + rollout->resident, actor->resident + rollout->peak});
}

// `view` (spec/node_groups.h): the GPU types of a cluster with several.
PlanRequest request_for(const SweepInputs& inputs, const SweepRow& row, const Lengths& lengths,
                        int view) {
  const SweepCluster& cluster = inputs.clusters.find(row.cluster)->second;
  PlanRequest request;
  request.models["actor"] = inputs.models.find(row.model)->second;
  if (row.precision == SweepPrecision::fp32) request.models["actor"].spec.dtype = DType::fp32;
  if (row.precision != SweepPrecision::fp32) request.models["actor"].spec.dtype = DType::bf16;
  request.cluster = cluster.spec;
  if (!cluster.spec.groups.empty()) {
    const GroupRange range = pool_views(cluster.spec)[static_cast<std::size_t>(view)];
    request.cluster = seen_from(cluster.spec, view);
    request.cluster.nodes = nodes_of(cluster.spec, range);
  }
  request.calibration = for_attention(seen_from(cluster.calibration, view), attention_of(row),
                                      request.cluster.device);
  request.traits = traits_of_row(row);
  Workload& workload = request.workload;
  workload.algorithm = "custom";
  workload.dataflow = dataflow_of(row.kind);
  workload.prompts_per_step = row.global_batch.value_or(1);
  workload.prompt_tokens = std::llround(lengths.prompt);
  workload.response_tokens = {lengths.response, lengths.cv, lengths.max};
  workload.mini_batches = std::max<std::int64_t>(
      1, workload.prompts_per_step / row.mini_batch.value_or(workload.prompts_per_step));
  return request;
}

// Rows with equal keys share an evaluator.
std::string key_of(const SweepRow& row, const Lengths& lengths, int view) {
  const EngineTraits traits = traits_of_row(row);
  std::array<char, 180> text{};
  std::snprintf(text.data(), text.size(), "|%d|%d|%d|%d%d%d%d%d%d%d%d%d|%lld|%lld|%.9g|%.9g|%lld",
                static_cast<int>(row.kind), static_cast<int>(row.precision),
                static_cast<int>(attention_of(row)), static_cast<int>(traits.expert_dispatch),
                static_cast<int>(traits.expert_overlap), traits.overlapped_tensor ? 1 : 0,
                traits.narrow_gradients ? 1 : 0, traits.master_parameters ? 1 : 0,
                traits.eager_elementwise ? 1 : 0, traits.keeps_gathered ? 1 : 0,
                static_cast<int>(traits.loss), traits.merged_dispatch ? 1 : 0,
                static_cast<long long>(row.global_batch.value_or(1)),
                static_cast<long long>(row.mini_batch.value_or(0)), lengths.prompt,
                lengths.response, static_cast<long long>(lengths.max));
  return row.model + "|" + row.cluster + "|" + row.engine + text.data() + "|" +
         std::to_string(view);
}

}  // namespace

struct SweepPricer::State {
  const SweepInputs& inputs;
  ModelTables tables;
  std::map<std::string, std::unique_ptr<CostEvaluator>> evaluators;

  explicit State(const SweepInputs& all) : inputs(all) {}

  const CostEvaluator& evaluator(const SweepRow& row, const Lengths& lengths, int view) {
    auto& entry = evaluators[key_of(row, lengths, view)];
    if (!entry) {
      entry = std::make_unique<CostEvaluator>(request_for(inputs, row, lengths, view), tables);
    }
    return *entry;
  }
};

namespace {

bool on_own_gpus(const SweepRow& row) {
  if (row.placement != SweepPlacement::by_gpus) return row.placement == SweepPlacement::split;
  return row.train_gpus && row.gen_gpus && row.gpus && *row.train_gpus + *row.gen_gpus <= *row.gpus;
}

// Batches that are generated at once: slots freed by one take sequences of the next, so as many
// steps share the end in which slots stay free.
std::int64_t batches_under_way(const SweepRow& row) {
  return row.kind == SweepKind::iteration && on_own_gpus(row)
             ? std::max<std::int64_t>(1, row.policy_lag.value_or(1))
             : 1;
}

// The row whose batch holds all of them.
SweepRow with_batches(SweepRow row, std::int64_t batches) {
  row.global_batch = row.global_batch.value_or(1) * batches;
  return row;
}

// One row: its completions, the best of them, its numbers. `generating` prices what is generated at
// once.
class RowPricing {
 public:
  RowPricing(const CostEvaluator& costs, const CostEvaluator& generating, const SweepRow& row,
             std::string assumed)
      : costs_(costs),
        generating_(generating),
        request_(costs.request()),
        row_(row),
        assumed_(std::move(assumed)) {}

  SweepResult run() {
    const bool trains = row_.kind != SweepKind::rollout;
    const bool generates = row_.kind == SweepKind::rollout || row_.kind == SweepKind::iteration;
    std::vector<Priced> training, generation;
    if (trains) training = training_options();
    if (generates) generation = generation_options();
    if ((trains && training.empty()) || (generates && generation.empty())) {
      SweepResult result;
      result.why = impossible_;
      return result;
    }
    const bool together = trains && generates && !on_own_gpus(row_);
    const Priced *actor = nullptr, *rollout = nullptr;
    if (together) {
      std::tie(actor, rollout) = best_pair(training, generation);
    } else {
      if (trains) actor = best_alone(training);
      if (generates) rollout = best_alone(generation);
    }
    return result_of(actor, rollout, together);
  }

 private:
  std::int64_t limit() const { return memory_limit(request_); }
  const ModelSpec& model() const { return request_.models.at("actor").spec; }

  // The fastest that fits, else the leanest.
  const Priced* best_alone(const std::vector<Priced>& options) const {
    const Priced* best = nullptr;
    for (const Priced& option : options) {
      const bool fits = option.cost.peak <= limit();
      const bool fitted = best != nullptr && best->cost.peak <= limit();
      const bool better = best == nullptr || (fits && !fitted) ||
                          (fits == fitted && (fits ? option.seconds < best->seconds
                                                   : option.cost.peak < best->cost.peak));
      if (better) best = &option;
    }
    return best;
  }

  std::pair<const Priced*, const Priced*> best_pair(const std::vector<Priced>& training,
                                                    const std::vector<Priced>& generation) const {
    std::pair<const Priced*, const Priced*> best{nullptr, nullptr};
    double best_seconds = 0;
    std::int64_t best_peak = 0;
    for (const Priced& actor : training) {
      for (const Priced& rollout : generation) {
        const std::int64_t peak = peak_together(&actor.cost, &rollout.cost);
        const double seconds = actor.seconds + rollout.seconds;
        const bool fits = peak <= limit(), fitted = best.first != nullptr && best_peak <= limit();
        const bool better = best.first == nullptr || (fits && !fitted) ||
                            (fits == fitted && (fits ? seconds < best_seconds : peak < best_peak));
        if (!better) continue;
        best = {&actor, &rollout};
        best_seconds = seconds;
        best_peak = peak;
      }
    }
    return best;
  }

  // Layouts that contradict themselves or the model are left out; the last reason is kept.
  void add(const CostEvaluator& costs, std::vector<Priced>& options, const Candidate& candidate,
           std::string chosen) {
    Problems problems;
    validate(layout_of(candidate, model().layers), model().layers, candidate.gpus, "",
             std::string(name_of(candidate.role)), problems);
    if (!problems.empty()) {
      impossible_ = problems[0].place + ": " + problems[0].found + ", not " + problems[0].expected;
      return;
    }
    Priced priced{candidate, costs.cost(candidate), 0, std::move(chosen)};
    for (const double seconds : priced.cost.seconds) priced.seconds += seconds;
    options.push_back(std::move(priced));
  }

  std::vector<Priced> training_options() {
    const auto completions = train_completions(row_, model(), request_.cluster);
    impossible_ = completions.why;
    const auto longest = static_cast<double>(longest_sequence(request_.workload));
    std::vector<Priced> options;
    for (const TrainLayout& layout : completions.layouts) {
      Candidate candidate{.role = Role::actor,
                          .gpus = layout.gpus(),
                          .tp = layout.tp,
                          .pp = layout.pp,
                          .dp = layout.dp,
                          .zero = layout.zero,
                          .tokens = std::llround(static_cast<double>(layout.micro_batch) * longest),
                          .cp = layout.cp,
                          .vpp = layout.vpp,
                          .ep = layout.ep,
                          .etp = layout.ep == 1 ? layout.tp : 1,  // experts cut as the rest is
                          .dp_shard = layout.zero == 3 ? layout.dp : 1,
                          .head_layers = layout.head_layers,
                          .sequence_parallel = layout.sequence_parallel,
                          .ulysses = layout.zero == 3 && layout.cp > 1,  // as verl's FSDP
                          .recompute = layout.recompute};
      candidate.offload.optimizer = row_.offload_optimizer;
      const std::string chosen = chosen_text(row_, layout);
      add(costs_, options, candidate, chosen);
      if (row_.kind != SweepKind::iteration) continue;
      candidate.offload = {.parameters = true, .gradients = true, .optimizer = true};
      add(costs_, options, candidate,
          chosen + (chosen.empty() ? "" : " ") + "offloaded while generating");
    }
    return options;
  }

  std::vector<Priced> generation_options() {
    const auto completions = gen_completions(row_, model(), request_.cluster);
    if (completions.layouts.empty()) impossible_ = completions.why;
    std::vector<Priced> options;
    for (const GenLayout& layout : completions.layouts) {
      Candidate candidate{.role = Role::rollout,
                          .gpus = layout.gpus(),
                          .tp = layout.tp,
                          .pp = layout.pp,
                          .dp = layout.dp,
                          .ep = layout.ep,
                          .etp = layout.ep == 1 ? layout.tp : 1};
      constexpr std::int64_t kPrefillTokens = 16384;
      candidate.tokens = std::max(request_.workload.prompt_tokens, kPrefillTokens);
      candidate.offload.parameters = row_.kind == SweepKind::iteration;  // unmapped while training
      const Workload& workload = generating_.request().workload;
      const std::int64_t sequences = (workload.sequences() + layout.dp - 1) / layout.dp;
      for (std::int64_t slots = sequences; slots >= 1; slots = slots == 1 ? 0 : (slots + 1) / 2) {
        candidate.max_sequences = slots;
        add(generating_, options, candidate, chosen_text(row_, layout));
        if (options.back().cost.peak <= limit()) break;  // fewer slots are only slower
      }
    }
    for (Priced& option : options) {
      option.seconds /= static_cast<double>(batches_under_way(row_));
      option.cost.seconds[at(Phase::gen)] /= static_cast<double>(batches_under_way(row_));
    }
    return options;
  }

  SweepResult result_of(const Priced* actor, const Priced* rollout, bool together) const {
    SweepResult result;
    std::string chosen;
    double train_gpus = 0, gpus = 0;
    if (actor != nullptr) {
      if (row_.kind != SweepKind::train) {
        result.log_prob_s = actor->cost.seconds[at(Phase::old_log_prob)];
      }
      if (row_.kind != SweepKind::logprob) {
        result.update_s = actor->cost.seconds[at(Phase::update_actor)];
      }
      append(chosen, actor->chosen);
      gpus = train_gpus = actor->candidate.gpus;
    }
    if (rollout != nullptr) {
      result.gen_s = rollout->cost.seconds[at(Phase::gen)];
      append(chosen, rollout->chosen);
      gpus = together ? std::max<double>(gpus, rollout->candidate.gpus)
                      : gpus + rollout->candidate.gpus;
    }
    if (actor != nullptr && rollout != nullptr) {
      result.reshard_s = costs_.reshard_seconds(actor->candidate, rollout->candidate, together);
    }
    if (actor != nullptr && row_.reference.value_or(false)) {
      result.log_prob_s = with_reference(*actor);
    }
    const double trained = result.log_prob_s.value_or(0) + result.update_s.value_or(0);
    const double generated = result.gen_s.value_or(0), moved = result.reshard_s.value_or(0);
    const bool overlapped =
        actor != nullptr && rollout != nullptr && !together && row_.policy_lag.value_or(1) > 0;
    result.step_s = moved + (overlapped ? std::max(trained, generated) : trained + generated);
    result.gpus = static_cast<std::int64_t>(gpus);
    set_rates(result, gpus, train_gpus);
    const std::int64_t peak = together ? peak_together(&actor->cost, &rollout->cost)
                                       : std::max(actor != nullptr ? actor->cost.peak : 0,
                                                  rollout != nullptr ? rollout->cost.peak : 0);
    result.peak_gib = with_reserve(peak) / (1LL << 30);
    result.feasible = peak <= limit();
    if (!result.feasible) result.why = shortage(actor, rollout, peak);
    append(result.why, chosen);
    append(result.why, assumed_);
    if (batches_under_way(row_) > 1) {
      append(result.why, std::to_string(batches_under_way(row_)) + " batches generated at once");
    }
    if (actor != nullptr) append(result.why, uneven_batch(actor->candidate.dp));
    append(result.why, grown_cluster(static_cast<std::int64_t>(gpus)));
    append(result.why, row_.notes);
    return result;
  }

  // The reference is scored where and as the actor is. Its weights wait in host memory: the actor's
  // go there, the reference's come, the actor's come back (NeMo RL's use_reference_model).
  double with_reference(const Priced& actor) const {
    constexpr double kCopies = 3;
    const auto weights =
        static_cast<double>(costs_.memory(actor.candidate, Phase::old_log_prob).weights);
    return 2 * actor.cost.seconds[at(Phase::old_log_prob)] +
           kCopies * host_copy_seconds(weights, request_.calibration);
  }

  // What a device holds: the roles' bytes with context and libraries.
  double with_reserve(std::int64_t bytes) const {
    return static_cast<double>(bytes) + request_.calibration.reserve_bytes.value;
  }

  // Frameworks pad or balance what dp does not divide: the step waits for the fullest replica.
  std::string uneven_batch(int dp) const {
    const Workload& work = request_.workload;
    const std::int64_t batch = work.sequences() / work.mini_batches;
    if (batch % dp == 0) return {};
    return "dp " + std::to_string(dp) + " does not divide the batch of " + std::to_string(batch) +
           ": priced as " + std::to_string((batch + dp - 1) / dp) + " sequences on every replica";
  }

  // A row may name a cluster of its kind of node that is smaller than the run.
  std::string grown_cluster(std::int64_t gpus) const {
    const ClusterSpec& cluster = request_.cluster;
    if (gpus <= cluster.gpus()) return {};
    const std::int64_t nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    return "the cluster has " + std::to_string(cluster.gpus()) + " GPUs: priced as " +
           std::to_string(nodes) + " of its nodes";
  }

  void set_rates(SweepResult& result, double gpus, double train_gpus) const {
    const Workload& workload = request_.workload;
    const double sequence =
        static_cast<double>(workload.prompt_tokens) + workload.response_tokens.mean;
    const double tokens = static_cast<double>(workload.sequences()) * sequence;
    result.tokens_per_s_per_gpu = tokens / *result.step_s / gpus;
    if (!result.update_s) return;
    result.mfu = 3 * forward_flops_per_token(model(), sequence) * tokens /
                 (*result.update_s * train_gpus * request_.cluster.device.peak_bf16.value);
  }

  // "rank in phase update_actor needs 91.2 GiB of 74.0 GiB; largest part activations, 50.1 GiB".
  std::string shortage(const Priced* actor, const Priced* rollout, std::int64_t peak) const {
    const Priced* worst =
        actor == nullptr || (rollout != nullptr && rollout->cost.peak - rollout->cost.resident >
                                                       actor->cost.peak - actor->cost.resident)
            ? rollout
            : actor;
    Phase phase = Phase::gen;
    std::int64_t most = -1;
    for (const Phase each : phases_of(request_.workload, worst->candidate.role)) {
      const std::int64_t total = costs_.memory(worst->candidate, each).total();
      if (total > most) {
        most = total;
        phase = each;
      }
    }
    const auto [name, bytes] = largest_class(costs_.memory(worst->candidate, phase));
    return "phase " + std::string(name_of(phase)) + " needs " + in_gib(with_reserve(peak)) +
           " of " + in_gib(with_reserve(limit())) + "; largest part " + name + ", " +
           in_gib(static_cast<double>(bytes));
  }

  const CostEvaluator& costs_;
  const CostEvaluator& generating_;
  const PlanRequest& request_;
  const SweepRow& row_;
  std::string assumed_, impossible_;
};

}  // namespace

SweepPricer::SweepPricer(const SweepInputs& inputs) : state_(std::make_unique<State>(inputs)) {}
SweepPricer::~SweepPricer() = default;

SweepResult SweepPricer::price(const SweepRow& row) {
  const ClusterSpec& cluster = state_->inputs.clusters.find(row.cluster)->second.spec;
  SweepResult best = price_on(row, 0);
  if (cluster.groups.empty() || !best.step_s) return best;
  append(best.why, "on " + type_name(cluster, 0));
  const std::vector<GroupRange> views = pool_views(cluster);
  for (std::size_t view = 1; view < views.size(); ++view) {
    SweepResult here = price_on(row, static_cast<int>(view));
    const bool room = here.gpus <= nodes_of(cluster, views[view]) * cluster.gpus_per_node;
    const bool better = here.feasible != best.feasible ? here.feasible : here.step_s < best.step_s;
    if (!here.step_s || !room || !better) continue;
    best = std::move(here);
    append(best.why, "on " + type_name(cluster, static_cast<int>(view)));
  }
  return best;
}

SweepResult SweepPricer::price_on(const SweepRow& row, int view) {
  SweepResult result;
  const SweepInputs& inputs = state_->inputs;
  result.why = contradictions(row, inputs.models.find(row.model)->second.spec,
                              inputs.clusters.find(row.cluster)->second.spec.gpus_per_node);
  if (!result.why.empty()) return result;
  const Lengths lengths = lengths_of(row);
  const CostEvaluator& costs = state_->evaluator(row, lengths, view);
  const CostEvaluator& generating =
      state_->evaluator(with_batches(row, batches_under_way(row)), lengths, view);
  const ClusterSpec& cluster = costs.request().cluster;
  auto made = with_gpus(row, cluster, 1);
  if (!made) return RowPricing(costs, generating, row, lengths.assumed).run();
  // The fewest GPUs that fit, by doubling; where none does, what the most would need.
  for (std::int64_t scale = 1; made && !result.feasible; scale *= 2) {
    const SweepResult tried = RowPricing(costs, generating, *made, lengths.assumed).run();
    if (tried.feasible || tried.step_s || !result.step_s) result = tried;
    std::string chosen;
    if (made->train_gpus != row.train_gpus) {
      append(chosen, "train_gpus=" + std::to_string(*made->train_gpus));
    }
    if (made->gen_gpus != row.gen_gpus) {
      append(chosen, "gen_gpus=" + std::to_string(*made->gen_gpus));
    }
    if (result.feasible) append(result.why, chosen + ", the fewest that fit");
    made = with_gpus(row, cluster, 2 * scale);
  }
  return result;
}

}  // namespace tessera
