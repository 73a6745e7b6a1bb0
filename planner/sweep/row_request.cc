#include "planner/sweep/row_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cost_models/documents/problem.h"
#include "cost_models/lengths.h"
#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/request/check_request.h"

namespace tessera {
namespace {

Dataflow dataflow_of(SweepKind kind) {
  const Call gen{Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"responses"}};
  const std::string input = kind == SweepKind::iteration ? "responses" : "prompts";
  const Call score{Phase::old_log_prob, Role::actor, CallKind::infer, {input}, {"old"}};
  const Call update{Phase::update_actor, Role::actor, CallKind::train, {input}, {}};
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

// torch's own attention is FlashAttention 2 (scaled_dot_product_attention of torch 2.2 to 2.4).
SweepAttention attention_of(const SweepRow& row) {
  const SweepAttention stated = row.attention.value_or(SweepAttention::flash);
  const bool of_torch = stated == SweepAttention::flash && (eager(row) || row.compiled);
  return of_torch ? SweepAttention::flash_2 : stated;
}

// nullopt: the engine's.
std::optional<AttentionKernels> kernels_of(SweepAttention attention) {
  switch (attention) {
    case SweepAttention::flash:
    case SweepAttention::unfused:
      return std::nullopt;
    case SweepAttention::flash_1:
      return AttentionKernels::flash_1;
    case SweepAttention::flash_2:
      return AttentionKernels::flash_2;
    case SweepAttention::flash_3:
      return AttentionKernels::best;
  }
  return std::nullopt;
}

// FSDP's models use flash-attn's loss (llm-foundry's default) or torch.compile's; NeMo and
// Megatron-Bridge, who call attention by Transformer Engine, also its cross entropy.
LossKernel loss_of(const SweepRow& row) {
  if (row.attention == SweepAttention::flash_3) return LossKernel::in_place;
  return shards_of_torch(row) ? LossKernel::fused : LossKernel::vocab_parallel;
}

// Products of 2,048 rows and more in fp8 take 1 / 1.87 of their time in bf16 beside the casts on
// H100 (1.86 on H200, 2.0 on B200; 4,508 shapes each, 2.6 % median error): aiconfigurator-core
// 1.3's tables of TensorRT-LLM, Apache-2.0.
constexpr double kFp8ProductSpeed = 1.87;

ElementwiseKernels elementwise_of(const SweepRow& row) {
  if (eager(row)) return ElementwiseKernels::eager;
  return shards_of_torch(row) ? ElementwiseKernels::remade : ElementwiseKernels::fused;
}

// Published trainers, from NeMo RL's refits, with a gather of the whole model tensor by tensor.
// Together: transfer and update of Qwen3-30B-A3B (18,867 tensors) take 9.7 s, of Qwen3-235B-A22B
// (36,568) 18.4 s; the rest of these refits, 7.5 s for 23 GB a GPU and 21.8 s for 44 GB, are
// optimizer states that leave for memory which is not pinned and which all ranks of a host allocate
// at once (NVIDIA-NeMo/RL#3294). Apart, in buckets: verl's of Qwen3-30B-A3B takes 4.4 s
// (docs/advance/fully_async.md). DeepSpeed's hybrid engine of 2023 generates with what it trains.
HandoverTraits handover_of(const SweepRow& row) {
  if (row.attention == SweepAttention::unfused) return {};
  return {.tensor = Seconds{0.5e-3},
          .broadcast_tensor = Seconds{0.23e-3},
          .gathered_first = true,
          .eviction = BytesPerSecond{2.5e9}};
}

// What published trainers of the row's kind do. Flash attention came with engines that overlap
// communication; before, Megatron-LM overlapped nothing, kept dropout's masks and all rows of
// logits (Narayanan et al. 2021, Korthikanti et al. 2022). Experts across nodes: published runs
// dispatch hierarchically and, under a pipeline, beside other micro-batches (DeepSeek-V3,
// Megatron-Bridge's recipes); of torch's trainers NeMo AutoModel and torchtitan dispatch by DeepEP.
EngineTraits published_traits(const SweepRow& row) {
  const bool flash = row.attention != SweepAttention::unfused;
  EngineTraits traits;
  // Stages are the slowest axis in Megatron-LM, in DeepSpeed (runtime/pipe/topology.py,
  // PipeModelDataParallelTopology) and in torchtitan (distributed/parallel_dims.py, build_mesh).
  traits.ranks = TrainedRanks::megatron;
  traits.kernels = {
      .flash_attention = flash, .dropout = !flash, .elementwise = elementwise_of(row)};
  traits.loss = {.rows = 0, .kernel = loss_of(row)};
  // DeepSpeed of 2021 kept and reduced gradients in 16 bit (Rajbhandari et al. 2020, sec. 3.1);
  // Megatron-LM does in fp16 unless accumulate-allreduce-grads-in-fp32 is asked for, which bf16
  // implies (megatron/training/arguments.py, validate_args).
  traits.gradients = {
      .overlapped = flash,
      .overlapped_replicas = flash,
      .narrow = row.precision == SweepPrecision::fp16 || (!flash && row.zero.value_or(0) == 3),
      .fresh = shards_of_torch(row)};
  traits.optimizer = {
      .offloaded = OffloadedStates::streamed, .overlapped_parameters = flash, .fused = true};
  traits.shards = {.overlapped = flash,
                   .master_parameters = shards_of_torch(row),
                   .transport = flash ? ShardTransport::collectives : ShardTransport::tensor_lists};
  traits.pipeline = {.cut_by_tp = true, .overlapped = flash};
  traits.experts = {.dispatch = ExpertDispatch::hierarchical,
                    .overlap = ExpertOverlap::across_nodes,
                    .merged_dispatch = shards_of_torch(row),
                    .synchronized_routing = true,
                    .eager_bias = !shards_of_torch(row)};
  traits.decode = {.graphed = true};
  traits.handover = handover_of(row);
  return traits;
}

// The engine's, or published ones; what a cell of the row states comes before either.
EngineTraits traits_of_row(const SweepRow& row) {
  EngineTraits traits = row.engine.empty() ? published_traits(row) : traits_of(row.engine);
  traits.shards.kept_gathered = !row.reshard_after_forward.value_or(true);
  if (row.precision == SweepPrecision::fp8) traits.kernels.product_speed = kFp8ProductSpeed;
  if (row.attention) {
    traits.kernels.flash_attention = row.attention != SweepAttention::unfused;
  }
  if (const auto kernels = kernels_of(attention_of(row))) traits.kernels.attention = *kernels;
  if (row.tp_overlap) traits.kernels.overlapped_tensor_parallel = *row.tp_overlap;
  if (row.loss) traits.loss = {.rows = 0, .kernel = *row.loss};
  if (row.narrow_gradients) traits.gradients.narrow = *row.narrow_gradients;
  if (row.rank_order) traits.ranks = *row.rank_order;
  if (row.expert_dispatch) {
    traits.experts.dispatch = *row.expert_dispatch;
    traits.experts.merged_dispatch = *row.expert_dispatch == ExpertDispatch::hierarchical;
  }
  if (row.expert_overlap) {
    traits.experts.overlap = *row.expert_overlap ? ExpertOverlap::always : ExpertOverlap::none;
  }
  return traits;
}

// TF32 on tensor cores takes twice the time of 16 bit (data sheets: A100 156 and 312 TFLOP/s, H100
// 495 and 989); devices without them multiply in fp32 either way.
Calibration for_precision(Calibration calibration, SweepPrecision precision) {
  if (precision != SweepPrecision::tf32) return calibration;
  calibration.fp32_factor.value = std::min(calibration.fp32_factor.value, 2.0);
  return calibration;
}

}  // namespace

void append(std::string& text, const std::string& more) {
  if (more.empty()) return;
  text += (text.empty() ? "" : "; ") + more;
}

RowLengths lengths_of(const SweepRow& row) {
  RowLengths lengths;
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
  // As configs/workloads: a mean below its limit has a spread, and what is published is the mean of
  // what was generated, the limit in it.
  constexpr double kSpread = 0.5;
  const double least = row.engine.empty() ? 1.0 : 1.5;
  if (static_cast<double>(lengths.max) > least * lengths.response) {
    lengths.cv = kSpread;
    lengths.unclipped = row.engine.empty() ? unclipped_mean(lengths.response, kSpread, lengths.max)
                                           : lengths.response;
  }
  return lengths;
}

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
  const double tokens = row.prompt_tokens.value_or(0) + row.response_tokens.value_or(0) +
                        static_cast<double>(row.max_response_tokens.value_or(0));
  if (row.kind != SweepKind::rollout && tokens == 0) {
    refuse("prompt_tokens", 0, "with response_tokens at least one");
  }
  if (row.mini_batch && row.global_batch && *row.global_batch % *row.mini_batch != 0) {
    refuse("mini_batch", static_cast<double>(*row.mini_batch),
           "a divisor of global_batch = " + std::to_string(*row.global_batch));
  }
  return text;
}

std::string beyond_positions(const SweepRow& row, const PlanRequest& request) {
  if (row.kind != SweepKind::iteration && row.kind != SweepKind::rollout) return {};
  Problems problems;
  check_lengths(request, problems);
  std::string text;
  for (const Problem& problem : problems) {
    append(text, problem.place + ": found " + problem.found + ", expected " + problem.expected);
  }
  return text;
}

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

bool on_own_gpus(const SweepRow& row) {
  if (row.placement != SweepPlacement::by_gpus) return row.placement == SweepPlacement::split;
  return row.train_gpus && row.gen_gpus && row.gpus && *row.train_gpus + *row.gen_gpus <= *row.gpus;
}

std::int64_t batches_under_way(const SweepRow& row) {
  return row.kind == SweepKind::iteration && on_own_gpus(row)
             ? std::max<std::int64_t>(1, row.policy_lag.value_or(1))
             : 1;
}

SweepRow with_batches(SweepRow row, std::int64_t batches) {
  row.global_batch = row.global_batch.value_or(1) * batches;
  return row;
}

// Held over counted in the peaks that others have published: 33 of Megatron-LM's pipelines (1.01 to
// 1.09, mean 1.055) and 4 of torchtitan's FSDP2 (0.82 to 1.12, mean 0.970). Rows of one publication
// err alike: the bias is the mean of the two means.
constexpr MemoryAccuracy kPublishedMemory{
    .bias = 0.013,
    .deviation = 0.055,
    .outside_deviation = Bytes{3LL << 29},
    .measured = 37,
    .source = "tests/validation/data/zero_bubble.csv, fsdp2.csv"};

PlanRequest request_for(const SweepInputs& inputs, const SweepRow& row, const RowLengths& lengths,
                        int view) {
  const SweepCluster& cluster = inputs.clusters.find(row.cluster)->second;
  PlanRequest request;
  request.models["actor"] = inputs.models.find(row.model)->second;
  const bool wide = row.precision == SweepPrecision::fp32 || row.precision == SweepPrecision::tf32;
  request.models["actor"].spec.dtype = wide ? DType::fp32 : DType::bf16;
  request.cluster = cluster.spec;
  if (!cluster.spec.groups.empty()) {
    const GroupRange range = pool_views(cluster.spec)[static_cast<std::size_t>(view)];
    request.cluster = seen_from(cluster.spec, view);
    request.cluster.nodes = nodes_of(cluster.spec, range);
  }
  request.calibration = for_precision(seen_from(cluster.calibration, view), row.precision);
  request.risk = inputs.risk;
  if (!row.engine.empty()) {
    request.engine = row.engine;
  } else {
    request.memory = kPublishedMemory;
  }
  request.traits = traits_of_row(row);
  Workload& workload = request.workload;
  workload.algorithm = "custom";
  workload.dataflow = dataflow_of(row.kind);
  workload.prompts_per_step = row.global_batch.value_or(1);
  workload.prompt_tokens = std::llround(lengths.prompt);
  workload.response_tokens = {lengths.cv > 0 ? lengths.unclipped : lengths.response, lengths.cv,
                              lengths.max};
  workload.mini_batches = std::max<std::int64_t>(
      1, workload.prompts_per_step / row.mini_batch.value_or(workload.prompts_per_step));
  return request;
}

std::string key_of(const SweepRow& row, const RowLengths& lengths, int view) {
  const EngineTraits traits = traits_of_row(row);
  std::array<char, 180> text{};
  std::snprintf(
      text.data(), text.size(), "|%d|%d|%d|%d%d%d%d%d%d%d%d%d%d%d|%lld|%lld|%.9g|%.9g|%lld",
      static_cast<int>(row.kind), static_cast<int>(row.precision),
      static_cast<int>(attention_of(row)), traits.kernels.flash_attention ? 1 : 0,
      static_cast<int>(traits.ranks), static_cast<int>(traits.experts.dispatch),
      static_cast<int>(traits.experts.overlap), traits.kernels.overlapped_tensor_parallel ? 1 : 0,
      traits.gradients.narrow ? 1 : 0, traits.shards.master_parameters ? 1 : 0,
      traits.kernels.elementwise == ElementwiseKernels::eager ? 1 : 0,
      traits.shards.kept_gathered ? 1 : 0, static_cast<int>(traits.loss.kernel),
      traits.experts.merged_dispatch ? 1 : 0, static_cast<long long>(row.global_batch.value_or(1)),
      static_cast<long long>(row.mini_batch.value_or(0)), lengths.prompt, lengths.response,
      static_cast<long long>(lengths.max));
  return row.model + "|" + row.cluster + "|" + row.engine + text.data() + "|" +
         std::to_string(view);
}

}  // namespace tessera
