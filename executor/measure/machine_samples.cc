#include "executor/measure/machine_samples.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "cost_models/compute.h"
#include "executor/comm/groups.h"
#include "executor/model/attention.h"
#include "executor/model/decode.h"
#include "executor/model/decoder.h"
#include "executor/model/gradient_products.h"
#include "executor/model/layer_ops.h"
#include "executor/model/norm_ops.h"
#include "executor/model/rope.h"
#include "executor/model/scores.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds of a core that this thread has used: what it would take with the core to itself.
double core_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Measures on all ranks together.
class Bench {
 public:
  Bench(Communicator& world, Communicator& host, const MeasureOptions& options)
      : world_(world), host_(host), options_(options) {}

  /// Seconds of compute: of the device, or of a core. Median of repetitions, meaned over the ranks.
  double compute(const std::function<void()>& body) {
    return options_.device.is_cuda() ? median(body, &Bench::wall) : median(body, &Bench::core);
  }
  /// Seconds that pass on all ranks together, shared cores included: a mean, because a turn that
  /// waits for its core is rare and long.
  double together(const std::function<void()>& body) {
    const int repetitions = repetitions_of(body, &Bench::wall);
    host_.barrier();
    const double all = wall([&] {
      for (int i = 0; i < repetitions; ++i) body();
    });
    return shared_mean(all / repetitions);
  }

  /// Seconds of a turn of all ranks, which begin together.
  double once(const std::function<void()>& body) {
    host_.barrier();
    return shared_mean(wall(body));
  }
  /// Keeps the devices busy for so long with products in turn.
  template <class Products>
  void load(const Products& products, double seconds) {
    const auto turn = [&] {
      for (const auto& product : products) product.run();
    };
    turn();
    const double each = once(turn);
    for (int left = static_cast<int>(seconds / each) + 1; left > 0; --left) turn();
  }
  /// Seconds of one launch among as many as fill the time, with nothing between.
  double loaded(const std::function<void()>& body, double seconds) {
    const double each = once(body);
    const int launches = std::clamp(static_cast<int>(seconds / each), 4, 4000);
    return once([&] {
             for (int i = 0; i < launches; ++i) body();
           }) /
           launches;
  }

  torch::TensorOptions tensor_options() const {
    return torch::TensorOptions().dtype(scalar_type(options_.dtype)).device(options_.device);
  }
  Communicator& world() { return world_; }
  const MeasureOptions& options() const { return options_; }

 private:
  using Timer = double (Bench::*)(const std::function<void()>&) const;

  double wall(const std::function<void()>& body) const {
    const Clock::time_point start = Clock::now();
    body();
    if (options_.device.is_cuda()) torch::cuda::synchronize(options_.device.index());
    return seconds_since(start);
  }
  double core(const std::function<void()>& body) const {
    const double start = core_seconds();
    body();
    return core_seconds() - start;
  }

  /// Equal on every rank.
  int repetitions_of(const std::function<void()>& body, Timer timer) {
    (this->*timer)(body);  // warm-up
    host_.barrier();
    const double once = shared_mean((this->*timer)(body));
    return std::clamp(static_cast<int>(options_.seconds_per_point / std::max(once, 1e-7)), 3, 400);
  }

  double median(const std::function<void()>& body, Timer timer) {
    std::vector<double> times(repetitions_of(body, timer));
    host_.barrier();
    for (double& each : times) each = (this->*timer)(body);
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return shared_mean(*middle);
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

/// A quick calibration of CPU ranks is for models that they can run; a GPU measures large sizes in
/// no more time.
bool small_sizes(const MeasureOptions& options) {
  return options.quick && !options.device.is_cuda();
}

void measure_matmul(Bench& bench, Samples& samples) {
  std::vector<std::int64_t> rows{16, 128, 1024, 4096}, widths{64, 256, 1024};
  if (!small_sizes(bench.options()))
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
             .seconds = bench.compute([&] { torch::mm_out(y, x, w.t()); })});
      }
    }
  }
}

struct Product {
  std::array<double, 3> sizes{};  // m, n, k
  std::function<void()> run;
};

/// The products of a layer's training step as the decoder makes them: forward, by input and, into
/// fp32 sums, by weight.
std::vector<Product> training_products(const torch::TensorOptions& options) {
  constexpr std::int64_t kTokens = 8192, kHidden = 4096, kFfn = 12288;
  std::vector<Product> products;
  const std::vector<std::pair<std::int64_t, std::int64_t>> weights = {
      {kHidden + kHidden / 2, kHidden}, {kHidden, kHidden}, {2 * kFfn, kHidden}, {kHidden, kFfn}};
  for (const auto& [out, in] : weights) {
    const torch::Tensor x = torch::randn({kTokens, in}, options);
    const torch::Tensor g = torch::randn({kTokens, out}, options);
    const torch::Tensor w = torch::randn({out, in}, options).mul_(0.02);
    const torch::Tensor sum = torch::zeros({out, in}, options.dtype(torch::kFloat32));
    const double m = kTokens, n = static_cast<double>(out), k = static_cast<double>(in);
    products.push_back({{m, n, k}, [x, w] { torch::mm(x, w.t()); }});
    products.push_back({{m, k, n}, [g, w] { torch::mm(g, w); }});
    products.push_back({{n, k, m}, [x, g, sum] { add_product(sum, g.t(), x); }});
  }
  return products;
}

/// Products in turn without a pause: clocks fall within a second of full load on all devices.
void measure_sustained(Bench& bench, Samples& samples) {
  if (!bench.options().device.is_cuda()) return;
  const torch::NoGradGuard no_grad;
  const std::vector<Product> products = training_products(bench.tensor_options());
  bench.load(products, bench.options().loaded_seconds);
  const double each = bench.options().loaded_seconds / static_cast<double>(products.size());
  for (const Product& product : products) {
    samples.push_back({.kind = SampleKind::sustained,
                       .sizes = product.sizes,
                       .seconds = bench.loaded(product.run, each)});
  }
}

/// The same products with reductions of a layer's gradients on the side stream all the while.
void measure_beside(Bench& bench, Samples& samples) {
  Communicator* const side = bench.options().side_world;
  const SideStream& stream = bench.options().side;
  if (side == nullptr || side->size() < 2 || !stream.exists()) return;
  const torch::NoGradGuard no_grad;
  const std::vector<Product> products = training_products(bench.tensor_options());
  constexpr std::int64_t kElements = 1 << 26;  // fp32: 256 MiB, a layer's gradients
  const torch::Tensor all = torch::zeros(
      {kElements}, torch::TensorOptions().dtype(torch::kFloat32).device(bench.options().device));
  const torch::Tensor own = all.narrow(0, 0, kElements / side->size()).clone();
  const auto reduce = [&] {
    stream.run(stream.now(), [&] {
      side->reduce_scatter(all.data_ptr(), own.data_ptr(), static_cast<std::size_t>(own.numel()),
                           DType::fp32, ReduceOp::sum);
    });
  };
  const auto compute = [&](int times) {
    for (int i = 0; i < times; ++i) {
      for (const Product& product : products) product.run();
    }
  };
  bench.load(products, bench.options().loaded_seconds / 2);
  constexpr int kReductions = 64;
  const double kernels = bench.once([&] { compute(8); }) / 8;
  const double alone = bench.once([&] {
    for (int i = 0; i < kReductions; ++i) reduce();
  });
  // Kernels enough to outlast the reductions, which are slower beside them.
  const int times = static_cast<int>(3 * alone / kernels) + 2;
  for (int round = 0; round < 3; ++round) {
    bench.load(products, bench.options().loaded_seconds / 4);
    const double base = bench.once([&] { compute(times); });
    const double together = bench.once([&] {
      for (int i = 0; i < kReductions; ++i) reduce();
      compute(times);
    });
    samples.push_back({.kind = SampleKind::beside, .sizes = {base, alone, 0}, .seconds = together});
  }
}

/// What a layer does beside GEMMs and attention, in the executor's own operators.
void measure_stream(Bench& bench, Samples& samples) {
  constexpr double kCount = 7;  // operators in the body below
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> rows{128, 1024, 4096}, widths{64, 256};
  if (!small_sizes(bench.options())) rows = {64, 512, 4096, 16384}, widths = {256, 1024, 4096};
  for (const std::int64_t tokens : rows) {
    for (const std::int64_t hidden : widths) {
      const RankModel rank{{.hidden = hidden,
                            .query_heads = 4,
                            .kv_heads = 2,
                            .head_dim = hidden / 4,
                            .ffn = 11 * hidden / 4},
                           1,
                           bench.options().dtype};
      const auto random = [&](std::vector<std::int64_t> shape) {
        return torch::randn(shape, bench.tensor_options());
      };
      const torch::Tensor x = random({tokens, hidden}), weight = random({hidden}),
                          q = random({tokens, 4, hidden / 4}), k = random({tokens, 2, hidden / 4}),
                          gate = random({tokens, 11 * hidden / 4}),
                          angles = random({tokens, hidden / 8});
      const RopeTable rope{angles, angles};
      samples.push_back(
          {.kind = SampleKind::stream,
           .sizes = {static_cast<double>(tokens) * layer_elementwise_bytes(rank), kCount},
           .seconds = bench.compute([&] {
             apply_rope(q, rope);
             apply_rope(k, rope);
             const torch::Tensor attended = x + rms_norm(x, weight, 1e-6);
             swiglu(gate, gate);
             attended + rms_norm(attended, weight, 1e-6);
           })});
    }
  }
}

void measure_collective(Bench& bench, Communicator& group, Samples& samples) {
  const int n = group.size();
  const std::int64_t largest = small_sizes(bench.options()) ? 1 << 20 : 1 << 28;
  for (std::int64_t bytes = 256; bytes <= largest; bytes *= 8) {
    torch::Tensor whole = torch::zeros(
        {bytes * n}, torch::TensorOptions().dtype(torch::kUInt8).device(bench.options().device));
    void* data = whole.data_ptr();
    auto* part = static_cast<std::byte*>(data) + group.rank() * bytes;
    const auto add = [&](Collective collective, double size, const std::function<void()>& body) {
      samples.push_back({.kind = SampleKind::collective,
                         .sizes = {size},
                         .seconds = bench.together(body),
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
    times.forward = bench.compute([&] { stage_forward(weights, alone, tokens); });
    CachedDecoder decoder(weights, alone);
    decoder.reserve(8, 200);
    std::vector<std::int64_t> slots(8);
    std::iota(slots.begin(), slots.end(), 0);
    const torch::Tensor ids = torch::full(
        {8}, 3, torch::TensorOptions().dtype(torch::kInt64).device(bench.options().device));
    times.decode = bench.compute([&] {
      if (decoder.length(0) == 0 || decoder.length(0) >= 190) decoder.prefill(tokens, slots);
      decoder.step(ids, slots);
    });
  }
  for (torch::Tensor& tensor : weights.tensors) {
    if (tensor.defined()) tensor.requires_grad_(true);
  }
  const double both =
      bench.compute([&] { stage_forward(weights, alone, tokens).sum().backward(); });
  times.backward = std::max(both - times.forward, 0.1 * both);
  return times;
}

/// Causal attention of the executor over packed sequences of one length, forward and backward.
void measure_attention(Bench& bench, Samples& samples) {
  ModelSpec model = small_model(1);
  const bool small = small_sizes(bench.options());
  if (!small) model.head_dim = 128;
  ParallelLayout layout;
  layout.stages = even_stages(1, 1);
  const Weights weights = make_weights(parameter_table(model), layout, {}, bench.options().dtype,
                                       bench.options().device);
  std::vector<std::int64_t> counts{8, 64, 512}, lengths{8, 32, 128};
  if (!small) counts = {1, 8, 64}, lengths = {128, 1024, 4096};
  for (const std::int64_t sequences : counts) {
    for (const std::int64_t length : lengths) {
      const std::int64_t tokens = sequences * length;
      const AttentionPlan plan = plan_attention(weights, std::vector(sequences, length));
      const auto random = [&](std::int64_t heads) {
        return torch::randn({tokens, heads, model.head_dim}, bench.tensor_options())
            .requires_grad_(true);
      };
      const torch::Tensor q = random(model.query_heads), k = random(model.kv_heads),
                          v = random(model.kv_heads);
      const std::array<double, 3> sizes = {static_cast<double>(sequences * model.query_heads),
                                           static_cast<double>(length),
                                           static_cast<double>(model.head_dim)};
      double forward = 0;
      {
        const torch::NoGradGuard no_grad;
        forward = bench.compute([&] { attend(plan, q, k, v); });
      }
      const double both = bench.compute([&] { attend(plan, q, k, v).sum().backward(); });
      samples.push_back({.kind = SampleKind::attention, .sizes = sizes, .seconds = forward});
      samples.push_back({.kind = SampleKind::attention_backward,
                         .sizes = sizes,
                         .seconds = std::max(both - forward, 0.1 * both)});
    }
  }
}

/// How much of the cores ranks take that wait in a collective while others compute: as many ranks
/// compute as there are cores, the others wait for them.
void measure_waiting(Bench& bench, Communicator& host, Samples& samples) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (bench.options().device.is_cuda() || host.size() <= cores) return;
  const torch::Tensor x = torch::randn({256, 256}, bench.tensor_options());
  host.barrier();
  std::array<float, 2> seconds{};  // that pass, that a core works; summed over the busy ranks
  if (host.rank() < cores) {
    const Clock::time_point start = Clock::now();
    const double used = core_seconds();
    while (seconds_since(start) < 0.5) torch::mm(x, x);
    seconds = {static_cast<float>(seconds_since(start)), static_cast<float>(core_seconds() - used)};
  }
  host.all_reduce(seconds.data(), 2, DType::fp32, ReduceOp::sum);
  samples.push_back(
      {.kind = SampleKind::waiting,
       .sizes = {static_cast<double>(cores), static_cast<double>(host.size() - cores), seconds[1]},
       .seconds = seconds[0]});
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
  measure_sustained(bench, samples);
  measure_beside(bench, samples);
  measure_stream(bench, samples);
  measure_attention(bench, samples);
  measure_collectives(bench, samples);
  measure_waiting(bench, host, samples);
  return samples;
}

}  // namespace tessera
