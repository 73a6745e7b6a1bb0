// Tessera's own executor. Sources: executor/train (Trainer), executor/rollout (RequestQueue,
// PagedModel) and executor/model (PagedDecoder).
#include <algorithm>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/expert_parallel.h"
#include "planner/engines/rows.h"

namespace tessera {
namespace {

/// Held over counted in 107 training steps on H200: 1.000, 0.002 apart at one deviation, 0.006 at
/// most. The deviation here is wider because generation and the reshards of RL steps are not among
/// them. Outside the allocator a rank alone holds what the reserve says; with 2 ranks 2.6 to 3.0
/// GiB more, with 4 3.7 to 5.1.
constexpr MemoryAccuracy kMeasuredMemory{.deviation = 0.01,
                                         .outside = Bytes{4LL << 30},
                                         .outside_deviation = Bytes{1LL << 30},
                                         .measured = 107,
                                         .source = "tests/validation/data/executor_memory.csv"};

/// What run.yaml refuses of adapters, too (executor/config/run_config_lora.cc).
std::string adapter_refusal(const ModelSpec& model, const Lora& lora) {
  if (model.moe) return "the products of experts have no adapters";
  if (lora.merged) return "the rollout adds them to the weights that it has";
  if (lora.alpha <= 0) return "their alpha is above 0";
  const ParameterTable table = parameter_table(model);
  const std::vector<std::string> known = adapted_modules(table, {.rank = 1, .targets = {}});
  std::string all;
  for (const std::string& module : known) all += (all.empty() ? "" : ", ") + module;
  for (const std::string& target : lora.targets) {
    if (std::ranges::find(known, target) == known.end()) {
      return "no matrix of a layer is called " + target + ", but " + all;
    }
  }
  return {};
}

DecodeTraits decoding() {
  DecodeTraits decode;
  decode.block_tokens = 64;  // kDevicePage of executor/rollout/generate.cc
  decode.graphed = decode.launched_ahead = true;
  decode.graphed_dispatch = false;  // executor/rollout/paged_model.cc
  // Counted and timed on an H200 (benchmarks/results/h200-decode-kernels.json).
  // A draw's time by the rows of benchmarks/results/h200-draws.json: a cluster of blocks keeps its
  // row, and loads and computes in step with the others; without clusters three kernels read it.
  decode.replayed = {.layer = 4,
                     .head_norms = 0,
                     .router = 20,
                     .embedding = 2,
                     .draw = {.starts = 5, .passes = 1.56},
                     .draw_without_clusters = {.starts = 10, .passes = 2.16}};
  decode.step_gap = Seconds{70e-6};  // 0.06 to 0.09 ms, idle_s / decode_steps
  decode.attention_start = 0.5;
  decode.shared_reads = 0.4;
  // Of two H200: 5.0 to 19.2 us for 2 KiB to 4 MiB (benchmarks/results/h200x2-peer-sums.json).
  decode.peer_sums = {.start = Seconds{5e-6},
                      .most = Traffic{4.0 * (1 << 20)},  // kMostPeerSumBytes
                      .most_ranks = 8};
  decode.cut_draws = true;
  return decode;
}

}  // namespace

Engine tessera_engine() {
  Engine engine;
  engine.name = kOwnEngine;
  engine.generation = GenerationEngine::tessera;
  Capabilities& can = engine.capabilities;
  can.roles = {kEveryRole.begin(), kEveryRole.end()};
  can.training.zero = {0, 1, 2, 3};
  can.training.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.training.virtual_stages = can.training.fully_sharded = can.training.sequence_parallel = true;
  can.training.context_parallel = true;  // as a ring and as Ulysses
  can.training.expert_parallel = true;
  can.training.experts = expert_refusal;
  can.serving.experts = ServedExperts::any_part;
  can.offload.trained = can.offload.rollout = true;
  can.pools.rollout_lags = {0};
  can.params = kTrainableTypes;
  can.families = {ModelFamily::llama,    ModelFamily::mistral, ModelFamily::qwen2,
                  ModelFamily::qwen3,    ModelFamily::mixtral, ModelFamily::qwen2_moe,
                  ModelFamily::qwen3_moe};
  can.model = model_refusal;
  engine.traits.kernels.account = ActivationAccount::executor;
  engine.traits.shards.overlapped = true;
  engine.traits.gradients.overlapped = true;
  engine.traits.optimizer.overlapped_parameters = true;
  engine.traits.kernels.overlapped_tensor_parallel = true;
  engine.traits.shards.transport = ShardTransport::copy_engines;
  engine.traits.shards.reduced_every_batch = true;
  engine.traits.optimizer.offloaded = OffloadedStates::on_host;
  engine.traits.decode = decoding();
  engine.traits.experts.gathered_first = true;  // executor/model/experts.cc
  engine.traits.experts.grouped = {.start = Seconds{10e-6}, .rate = 0.6};
  engine.traits.kernels.fused_activation = true;
  engine.traits.loss.passes = {.forward = 1, .backward = 3.5};
  can.lora = true;
  can.adapters = adapter_refusal;
  engine.traits.adapters = {.replicated = true, .minimal = true, .joined = true};
  engine.prompts = PromptDealing::whole_prompts;
  engine.weights.exact_ranges = true;
  engine.weights.any_rank_list = true;
  engine.weights.shares_memory = true;
  engine.memory = kMeasuredMemory;
  return engine;
}

}  // namespace tessera
