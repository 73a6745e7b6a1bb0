#include "executor/bench/train_bench.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "executor/bench/gemm_ceiling.h"
#include "executor/bench/kernel_profile.h"
#include "executor/comm/comm_times.h"
#include "executor/comm/groups.h"
#include "executor/comm/nccl_world.h"
#include "executor/comm/stopwatch.h"
#include "executor/measure/device_timing.h"
#include "executor/measure/timing.h"
#include "executor/storage/shared_block.h"
#include "executor/train/trainer.h"

namespace tessera {
namespace {

using nlohmann::json;
namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr int kProductRounds = 5;
constexpr double kLearningRate = 1e-5;

/// Sequences of random tokens, one token of prompt each; every rank makes the same.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::int64_t length = 0;

  Batch(std::int64_t sequences, std::int64_t length, std::int64_t vocab, unsigned seed)
      : tokens(static_cast<std::size_t>(sequences * length)), length(length) {
    std::minstd_rand random(seed + 1);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % vocab);
  }
  std::vector<TokenSequence> sequences() const {
    std::vector<TokenSequence> all;
    const std::span<const std::int32_t> every(tokens);
    const auto size = static_cast<std::size_t>(length);
    for (std::size_t first = 0; first < tokens.size(); first += size) {
      all.push_back({every.subspan(first, 1), every.subspan(first + 1, size - 1)});
    }
    return all;
  }
};

/// Cross entropy, the mean over the batch's `tokens` predicted tokens; over `replicas` as batch.h
/// says.
LossFunction cross_entropy(double tokens, int replicas) {
  return [scale = replicas / tokens](std::span<const int>, std::span<const double> scores,
                                     std::span<const double>) {
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    return LossGradient{.value = -sum * scale,
                        .score_gradient = std::vector<double>(scores.size(), -scale),
                        .weight = static_cast<double>(scores.size())};
  };
}

/// A whole model's, cut: equal in every layout.
Weights random_weights(const ModelSpec& model, const ParallelLayout& layout, const RankCoord& coord,
                       DType dtype, torch::Device device) {
  Weights weights = make_weights(parameter_table(model), layout, coord, dtype, device);
  initialize(weights, /*seed=*/11, /*deviation=*/0.02, device);
  return weights;
}

class TrainBench {
 public:
  TrainBench(const TrainSite& site, const ModelSpec& model, const TrainBenchOptions& options)
      : site_(site),
        model_(model),
        options_(options),
        map_(whole_world(options.layout, *site.at.world)),
        times_(site.at.world->rank(), site.at.gpu() ? make_cuda_clock(site.at.stream) : nullptr),
        waits_(std::make_shared<StreamWaits>()),
        groups_(make_groups(*site.at.world, map_, times_.decorator())) {
    if (site.side_world != nullptr) side_group_ = make_shard_group(*site.side_world, map_);
    if (site.side_world != nullptr && options.layout.cp > 1) {
      ring_lane_ = make_axis_group(*site.side_world, map_, Axis::cp);
    }
    if (options.read_peers) {
      host_group_ = make_shard_group(*site.at.host, map_);
      tensor_host_ = make_axis_group(*site.at.host, map_, Axis::tp);
    }
  }

  json run() {
    const at::AutoGradMode recording(true);
    json result = description();
    Weights weights =
        random_weights(model_, options_.layout, groups_.coord, options_.dtype, site_.at.device);
    if (options_.ceilings) result["ceiling"] = ceiling(weights);
    begin_memory();
    Trainer trainer(weights, groups_, AdamWOptions{.offload = options_.offload}, trainer_options());
    begin_memory();
    UpdateResult last;
    for (int step = 0; step < options_.warm_up; ++step) last = train(trainer, step, nullptr);
    times_.metrics();
    synchronize(site_.at.device);
    waits_->take_seconds();
    begin_memory();
    site_.at.host->barrier();
    Laps laps(site_.at.device);
    const Stopwatch watch;
    for (int step = 0; step < options_.steps; ++step) {
      last = train(trainer, options_.warm_up + step, &laps);
    }
    synchronize(site_.at.device);
    add_times(result, laps, slowest(*site_.at.host, watch.seconds() / options_.steps));
    result["memory"] = memory();
    result["loss"] = last.loss;
    result["grad_norm"] = last.grad_norm;
    if (options_.profile) result["profile"] = profile(trainer);
    return result;
  }

 private:
  static RankMap whole_world(const ParallelLayout& layout, Communicator& world) {
    std::vector<int> ranks(static_cast<std::size_t>(world.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    Problems problems;
    RankMap map = make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "layout", problems);
    if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
    return map;
  }

  TrainerOptions trainer_options() const {
    TrainerOptions options{.recompute = options_.recompute};
    options.sharding.reshard_after_forward = options_.reshard_after_forward;
    options.sharding.side_group = side_group_.get();
    options.sharding.host_group = host_group_.get();
    options.tensor_host = tensor_host_.get();
    options.sharding.read_gradients = options_.read_gradients;
    if (ring_lane_ != nullptr) {
      options.context = {.lane = ring_lane_.get(), .side = site_.side};
      options.context.side.measure(waits_);
    }
    if (side_group_ != nullptr) {
      options.sharding.side = site_.side;
      options.sharding.side.measure(waits_);
    }
    return options;
  }

  std::int64_t step_tokens() const {
    return options_.micro_batch_tokens * options_.micro_batches * options_.layout.dp;
  }

  const char* recompute_name() const {
    switch (options_.recompute) {
      case Recompute::selective:
        return "selective";
      case Recompute::full:
        return "full";
      default:
        return "none";
    }
  }

  json description() const {
    const ParallelLayout& layout = options_.layout;
    return {{"layout",
             {{"tp", layout.tp},
              {"cp", layout.cp},
              {"ulysses", layout.ulysses},
              {"pp", layout.pp},
              {"vpp", layout.vpp},
              {"dp_replicate", layout.dp_replicate()},
              {"dp_shard", layout.dp_shard},
              {"zero", layout.zero},
              {"sequence_parallel", layout.sequence_parallel}}},
            {"layers", model_.layers},
            {"sequence", options_.sequence},
            {"micro_batch_tokens", options_.micro_batch_tokens},
            {"micro_batches", options_.micro_batches},
            {"recompute", recompute_name()},
            {"reshard_after_forward", options_.reshard_after_forward},
            {"offload", options_.offload},
            {"side_stream", side_group_ != nullptr},
            {"read_peers", options_.read_peers},
            {"read_gradients", options_.read_peers && options_.read_gradients},
            {"dtype", name_of(options_.dtype)},
            {"steps", options_.steps}};
  }

  UpdateResult train(Trainer& trainer, int step, Laps* laps) {
    const Batch batch(step_tokens() / options_.sequence, options_.sequence, model_.vocab,
                      static_cast<unsigned>(step));
    const std::vector<TokenSequence> sequences = batch.sequences();
    const auto predicted =
        static_cast<double>(sequences.size()) * static_cast<double>(options_.sequence - 1);
    const auto mark = [&] {
      if (laps != nullptr) laps->mark();
    };
    mark();
    trainer.optimizer().zero_gradients();
    UpdateResult result =
        trainer.accumulate(sequences, cross_entropy(predicted, options_.layout.dp),
                           {.token_limit = options_.micro_batch_tokens});
    mark();
    const StepResult stepped = trainer.optimizer().step(kLearningRate);
    mark();
    result.grad_norm = stepped.grad_norm;
    result.applied = stepped.applied;
    return result;
  }

  void add_times(json& result, const Laps& laps, double step_s) {
    const double steps = options_.steps, ranks = site_.at.world->size();
    const double tokens = static_cast<double>(step_tokens());
    const auto sequence = static_cast<double>(options_.sequence);
    double inline_comm = 0;
    json groups = json::object();
    for (const auto& [name, value] : times_.metrics()) {
      if (!name.ends_with("_s")) continue;
      inline_comm += value / steps;
      groups[name] = value / steps;
    }
    result["step_s"] = step_s;
    result["tokens_per_s_per_gpu"] = tokens / step_s / ranks;
    // Marks: begin, after backward, after the optimizer, of every step.
    result["split"] = {
        {"forward_backward_s", laps.seconds(0, 3) / steps},
        {"optimizer_s", laps.seconds(1, 3) / steps},
        {"exposed_side_s", side_group_ || ring_lane_ ? waits_->take_seconds() / steps : 0.0},
        {"inline_comm_s", inline_comm},
        {"inline_comm", groups}};
    const double flops = 3 * forward_flops_per_token(model_, sequence) * tokens;
    const double with_embedding =
        flops + 6.0 * static_cast<double>(model_.vocab * model_.hidden) * tokens;
    result["flops_per_token"] = flops / tokens;
    if (options_.peak_flops <= 0) return;
    result["mfu"] = flops / step_s / ranks / options_.peak_flops;
    result["mfu_verl"] = with_embedding / step_s / ranks / options_.peak_flops;
  }

  json ceiling(const Weights& weights) {
    site_.at.host->barrier();
    double seconds = 0, flops = 0;
    json products = json::array();
    for (const TimedProduct& each :
         time_products(weights, options_.micro_batch_tokens, kProductRounds)) {
      const double times = each.per_micro_batch * options_.micro_batches;
      seconds += each.seconds * times;
      flops += each.flops() * times;
      products.push_back({{"product", each.name},
                          {"m", each.m},
                          {"n", each.n},
                          {"k", each.k},
                          {"seconds", each.seconds},
                          {"times", times},
                          {"tflops", each.flops() / each.seconds * 1e-12}});
    }
    return {{"gemm_s", slowest(*site_.at.host, seconds)},
            {"gemm_tflops", flops / seconds * 1e-12},
            {"products", products}};
  }

  json profile(Trainer& trainer) {
    site_.at.host->barrier();
    const KernelProfile measured = profile_kernels(
        [&] {
          train(trainer, 0, nullptr);
          synchronize(site_.at.device);
        },
        site_.at.gpu());
    std::map<std::string, double> kinds;
    json kernels = json::array();
    for (const KernelTime& each : measured.kernels) {
      kinds[each.kind] += each.seconds;
      constexpr std::size_t kShown = 40;
      if (kernels.size() < kShown) {
        kernels.push_back({{"kernel", each.name.substr(0, 110)},
                           {"kind", each.kind},
                           {"launches", each.launches},
                           {"seconds", each.seconds}});
      }
    }
    json idle = json::array();
    for (const IdleTime& each : measured.idle) {
      constexpr std::size_t kGapsShown = 15;
      if (idle.size() == kGapsShown) break;
      idle.push_back({{"after", each.after.substr(0, 60)},
                      {"before", each.before.substr(0, 60)},
                      {"times", each.times},
                      {"seconds", each.seconds}});
    }
    return {{"kinds", kinds},
            {"kernels", kernels},
            {"span_s", measured.span_s},
            {"idle_s", measured.idle_s},
            {"idle", idle}};
  }

  /// Gives what was freed back to the device, and starts high-water marks anew.
  void begin_memory() const {
    if (!site_.at.gpu()) return;
    synchronize(site_.at.device);
    allocator::emptyCache();
    allocator::resetPeakStats(site_.at.device.index());
  }
  json memory() const {
    if (!site_.at.gpu()) return nullptr;
    const auto stats = allocator::getDeviceStats(site_.at.device.index());
    const auto most = [&](const auto& stat) {
      return slowest(*site_.at.host, static_cast<double>(stat[0].peak));
    };
    return {{"allocated", most(stats.allocated_bytes)},
            {"reserved", most(stats.reserved_bytes)},
            {"shared", slowest(*site_.at.host, static_cast<double>(device_block_bytes()))},
            {"free_now", site_.at.free_bytes()}};
  }

  const TrainSite& site_;
  const ModelSpec& model_;
  const TrainBenchOptions& options_;
  RankMap map_;
  CommTimes times_;
  std::shared_ptr<StreamWaits> waits_;
  ParallelGroups groups_;
  std::unique_ptr<Communicator> side_group_, host_group_, tensor_host_, ring_lane_;
};

}  // namespace

json bench_train(const TrainSite& site, const ModelSpec& model, const TrainBenchOptions& options) {
  return TrainBench(site, model, options).run();
}

}  // namespace tessera
