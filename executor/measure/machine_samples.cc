#include "executor/measure/machine_samples.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "cost_models/compute.h"
#include "executor/comm/groups.h"
#include "executor/model/decode.h"
#include "executor/model/decoder.h"
#include "executor/model/scores.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Measures on all ranks together.
class Bench {
 public:
  Bench(Communicator& world, Communicator& host, const MeasureOptions& options)
      : world_(world), host_(host), options_(options) {}

  /// Median seconds of `body`, meaned over the ranks. Every rank repeats equally often.
  double time(const std::function<void()>& body) {
    run(body);  // warm-up
    host_.barrier();
    const double once = shared_mean(run(body));
    const int repetitions =
        std::clamp(static_cast<int>(options_.seconds_per_point / std::max(once, 1e-7)), 3, 400);
    std::vector<double> times(repetitions);
    host_.barrier();
    for (double& each : times) each = run(body);
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return shared_mean(times[repetitions / 2]);
  }

  torch::TensorOptions tensor_options() const {
    return torch::TensorOptions().dtype(scalar_type(options_.dtype)).device(options_.device);
  }
  Communicator& world() { return world_; }
  const MeasureOptions& options() const { return options_; }

 private:
  double run(const std::function<void()>& body) const {
    const Clock::time_point start = Clock::now();
    body();
    if (options_.device.is_cuda()) torch::cuda::synchronize(options_.device.index());
    return seconds_since(start);
  }

  double shared_mean(double mine) {
    auto value = static_cast<float>(mine);
    host_.all_reduce(&value, 1, DType::fp32, ReduceOp::sum);
    return value / host_.size();
  }

  Communicator& world_;
  Communicator& host_;
  const MeasureOptions& options_;
};

using Samples = std::vector<CalibrationSample>;

void measure_matmul(Bench& bench, Samples& samples) {
  std::vector<std::int64_t> rows{16, 128, 512}, widths{64, 256, 1024};
  if (!bench.options().quick)
    rows = {1, 16, 128, 512, 2048, 8192}, widths = {256, 1024, 4096, 8192};
  for (const std::int64_t m : rows) {
    for (const std::int64_t n : widths) {
      for (const std::int64_t k : {n, n / 2}) {
        const torch::Tensor x = torch::randn({m, k}, bench.tensor_options());
        const torch::Tensor w = torch::randn({n, k}, bench.tensor_options());
        torch::Tensor y = torch::empty({m, n}, bench.tensor_options());
        samples.push_back(
            {.kind = SampleKind::matmul,
             .sizes = {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)},
             .seconds = bench.time([&] { torch::mm_out(y, x, w.t()); })});
      }
    }
  }
}

void measure_stream(Bench& bench, Samples& samples) {
  const std::int64_t largest = bench.options().quick ? 1 << 22 : 1 << 28;
  for (std::int64_t elements = 1 << 12; elements <= largest; elements *= 8) {
    torch::Tensor x = torch::ones({elements}, bench.tensor_options());
    const double bytes = 2.0 * static_cast<double>(x.nbytes());
    samples.push_back({.kind = SampleKind::stream, .sizes = {bytes}, .seconds = bench.time([&] {
                         x.mul_(1.0);
                       })});
  }
}

void measure_collective(Bench& bench, Communicator& group, Samples& samples) {
  const int n = group.size();
  const std::int64_t largest = bench.options().quick ? 1 << 20 : 1 << 28;
  for (std::int64_t bytes = 256; bytes <= largest; bytes *= 8) {
    torch::Tensor whole = torch::zeros(
        {bytes * n}, torch::TensorOptions().dtype(torch::kUInt8).device(bench.options().device));
    void* data = whole.data_ptr();
    auto* part = static_cast<std::byte*>(data) + group.rank() * bytes;
    const auto add = [&](Collective collective, double size, const std::function<void()>& body) {
      samples.push_back({.kind = SampleKind::collective,
                         .sizes = {size},
                         .seconds = bench.time(body),
                         .collective = collective,
                         .ranks = n});
    };
    const auto all = static_cast<double>(bytes * n), one = static_cast<double>(bytes);
    const std::size_t floats = bytes / 4;
    add(Collective::all_reduce, one,
        [&] { group.all_reduce(data, floats, DType::fp32, ReduceOp::sum); });
    add(Collective::all_gather, all, [&] { group.all_gather(part, data, floats, DType::fp32); });
    add(Collective::reduce_scatter, all,
        [&] { group.reduce_scatter(data, part, floats, DType::fp32, ReduceOp::sum); });
    add(Collective::broadcast, one, [&] { group.broadcast(data, floats, DType::fp32, 0); });
    const SendBlock send{(group.rank() + 1) % n, data, static_cast<std::size_t>(bytes)};
    const ReceiveBlock receive{(group.rank() + n - 1) % n,
                               static_cast<std::byte*>(data) + (n - 1) * bytes,
                               static_cast<std::size_t>(bytes)};
    add(Collective::send_receive, one, [&] { group.exchange({&send, 1}, {&receive, 1}); });
  }
}

/// Pairs, and the whole world.
void measure_collectives(Bench& bench, Samples& samples) {
  Communicator& world = bench.world();
  if (world.size() < 2) return;
  std::vector<std::unique_ptr<Communicator>> pairs;
  Communicator* mine = nullptr;
  for (int first = 0; first + 1 < world.size(); first += 2) {
    const int members[] = {first, first + 1};
    pairs.push_back(world.split(members));
    if (pairs.back() != nullptr) mine = pairs.back().get();
  }
  if (mine != nullptr && world.size() % 2 == 0) measure_collective(bench, *mine, samples);
  if (world.size() > 2) measure_collective(bench, world, samples);
}

/// A decoder small enough that its operators do next to nothing.
ModelSpec small_model(std::int64_t layers) {
  return {.family = ModelFamily::qwen2,
          .layers = layers,
          .hidden = 64,
          .query_heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .ffn = 176,
          .vocab = 16,
          .max_positions = 256,
          .tied_embeddings = true,
          .qkv_bias = true};
}

struct SmallModelTimes {
  double forward = 0, backward = 0, decode = 0;
};

SmallModelTimes time_small_model(Bench& bench, std::int64_t layers) {
  ParallelLayout layout;
  layout.stages = even_stages(layers, 1);
  const ParallelGroups alone{.member = true, .index = 0};
  Weights weights = make_weights(parameter_table(small_model(layers)), layout, {},
                                 bench.options().dtype, bench.options().device);
  initialize(weights, 1);
  const std::vector<std::vector<std::int64_t>> sequences(8, std::vector<std::int64_t>(8, 3));
  const PackedTokens tokens = pack_tokens(sequences, bench.options().device);
  SmallModelTimes times;
  {
    const torch::NoGradGuard no_grad;
    times.forward = bench.time([&] { stage_forward(weights, alone, tokens); });
    CachedDecoder decoder(weights, alone);
    decoder.reserve(8, 200);
    std::vector<std::int64_t> slots(8);
    std::iota(slots.begin(), slots.end(), 0);
    const torch::Tensor ids = torch::full(
        {8}, 3, torch::TensorOptions().dtype(torch::kInt64).device(bench.options().device));
    times.decode = bench.time([&] {
      if (decoder.length(0) == 0 || decoder.length(0) >= 190) decoder.prefill(tokens, slots);
      decoder.step(ids, slots);
    });
  }
  for (torch::Tensor& tensor : weights.tensors) {
    if (tensor.defined()) tensor.requires_grad_(true);
  }
  const double both = bench.time([&] { stage_forward(weights, alone, tokens).sum().backward(); });
  times.backward = std::max(both - times.forward, 0.1 * both);
  return times;
}

/// Per operator: what four more layers cost, by the number of operators that the cost model counts.
void measure_operators(Bench& bench, Samples& samples) {
  const SmallModelTimes shallow = time_small_model(bench, 2), deep = time_small_model(bench, 6);
  const auto add = [&](SampleKind kind, int operators, double four_layers) {
    samples.push_back({.kind = kind,
                       .sizes = {static_cast<double>(operators)},
                       .seconds = std::max(four_layers, 1e-7) / 4});
  };
  add(SampleKind::dispatch, kOperators.layer_forward, deep.forward - shallow.forward);
  add(SampleKind::dispatch, kOperators.layer_decode, deep.decode - shallow.decode);
  add(SampleKind::backward_dispatch, kOperators.layer_backward, deep.backward - shallow.backward);
}

}  // namespace

std::vector<CalibrationSample> measure_machine(Communicator& world, Communicator& host,
                                               const MeasureOptions& options) {
  torch::manual_seed(1);
  Bench bench(world, host, options);
  Samples samples;
  measure_operators(bench, samples);
  measure_matmul(bench, samples);
  measure_stream(bench, samples);
  measure_collectives(bench, samples);
  return samples;
}

}  // namespace tessera
