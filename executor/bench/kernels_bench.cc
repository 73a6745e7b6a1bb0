#include "executor/bench/kernels_bench.h"

#include <ATen/ops/_fused_adamw.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "executor/attention/attention.h"
#include "executor/bench/gemm_ceiling.h"
#include "executor/measure/device_timing.h"
#include "executor/model/layer_ops.h"
#include "executor/model/scores.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/norm_ops.h"
#include "executor/tensor/rope.h"
#include "executor/tensor/torch_memory_ops.h"

namespace tessera {
namespace {

using nlohmann::json;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Takes a gradient and keeps nothing: an input whose gradient costs no accumulation.
struct Sink : torch::autograd::Function<Sink> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.view_as(x); }
  static variable_list backward(AutogradContext*, variable_list) { return {Tensor()}; }
};
Tensor input(const Tensor& x) { return Sink::apply(x.detach().requires_grad_(true)); }

class KernelsBench {
 public:
  KernelsBench(const BenchSite& site, const ModelSpec& model, const KernelsBenchOptions& options)
      : site_(site),
        model_(model),
        options_(options),
        plain_(torch::TensorOptions().dtype(scalar_type(options.dtype)).device(site.device)),
        wide_(plain_.dtype(at::kFloat)),
        element_(static_cast<double>(size_of(options.dtype))) {}

  json run() {
    const at::AutoGradMode recording(true);
    measure_copy();
    norms();
    rotary();
    swiglu_rows();
    attention();
    products();
    scores();
    optimizer();
    sums_of_ranges();
    return {{"copy_tb_per_s", copy_ * 1e-12},
            {"tokens", options_.tokens},
            {"fused", fused::usable(torch::empty({1}, plain_))},
            {"kernels", rows_}};
  }

 private:
  double seconds_of(const std::function<void()>& body) const {
    return seconds_per_launch(site_.device, options_.repetitions, body);
  }

  void measure_copy() {
    const std::int64_t bytes = site_.gpu() ? std::int64_t{1} << 31 : std::int64_t{1} << 26;
    const auto options = plain_.dtype(at::kByte);
    const Tensor from = torch::ones({bytes}, options), to = torch::empty({bytes}, options);
    copy_ = 2 * static_cast<double>(bytes) / seconds_of([&] { to.copy_(from); });
  }

  void moves(const std::string& kernel, double bytes, const std::function<void()>& body) {
    const double seconds = seconds_of(body);
    rows_.push_back({{"kernel", kernel},
                     {"seconds", seconds},
                     {"bytes", bytes},
                     {"tb_per_s", bytes / seconds * 1e-12},
                     {"ceiling", "copy"},
                     {"of_ceiling", bytes / seconds / copy_}});
  }
  void multiplies(const std::string& kernel, double flops, double ceiling,
                  const std::function<void()>& body) {
    const double seconds = seconds_of(body);
    json row{{"kernel", kernel},
             {"seconds", seconds},
             {"flops", flops},
             {"tflops", flops / seconds * 1e-12}};
    if (ceiling > 0) {
      row["ceiling"] = "matrix product";
      row["of_ceiling"] = flops / seconds / ceiling;
    }
    rows_.push_back(std::move(row));
  }
  /// Backward of what `outputs` are made of, again and again.
  static void backward(const variable_list& outputs, const variable_list& gradients) {
    torch::autograd::backward(outputs, gradients, /*retain_graph=*/true);
  }

  Tensor random(at::IntArrayRef shape) const { return torch::randn(shape, plain_); }
  /// A parameter whose gradient is added to an fp32 buffer, as the trainer's.
  Tensor parameter(at::IntArrayRef shape) const {
    Tensor made = random(shape).mul_(0.02).requires_grad_(true);
    if (options_.dtype != DType::fp32) made.set_grad_dtype(at::kFloat);
    made.mutable_grad() = torch::zeros(shape, wide_);
    return made;
  }

  void norms() {
    const std::int64_t tokens = options_.tokens, hidden = model_.hidden;
    const double one = static_cast<double>(tokens * hidden) * element_;
    const Tensor x = input(random({tokens, hidden})), residual = input(random({tokens, hidden}));
    const Tensor weight = parameter({hidden});
    moves("RMSNorm forward", 2 * one, [&] { rms_norm(x, weight, model_.norm_epsilon); });
    moves("residual + RMSNorm forward", 4 * one,
          [&] { add_rms_norm(x, residual, weight, model_.norm_epsilon); });
    const ResidualNorm out = add_rms_norm(x, residual, weight, model_.norm_epsilon);
    const variable_list g{random({tokens, hidden}), random({tokens, hidden})};
    moves("residual + RMSNorm backward", 4 * one, [&] { backward({out.sum, out.normed}, g); });
  }

  void rotary() {
    const std::int64_t tokens = options_.tokens, heads = model_.query_heads;
    const double one = static_cast<double>(tokens * heads * model_.head_dim) * element_;
    const Tensor frequencies = rope_frequencies(model_.rope, model_.head_dim).to(site_.device);
    const Tensor positions =
        torch::arange(tokens, plain_.dtype(at::kLong)).remainder_(options_.sequence);
    const RopeTable table = rope_table(frequencies, model_.rope.attention_factor, positions,
                                       scalar_type(options_.dtype));
    const Tensor x = input(random({tokens, heads, model_.head_dim}));
    moves("rotary embedding forward", 2 * one, [&] { apply_rope(x, table); });
    const Tensor y = apply_rope(x, table), g = random(y.sizes());
    moves("rotary embedding backward", 2 * one, [&] { backward({y}, {g}); });
  }

  void swiglu_rows() {
    const std::int64_t tokens = options_.tokens, ffn = model_.ffn;
    const double one = static_cast<double>(tokens * ffn) * element_;
    const Tensor both = random({tokens, 2 * ffn});
    const auto half = [&](std::int64_t first) {
      return input(
          torch::empty({0}, plain_).set_(both.storage(), first, {tokens, ffn}, {2 * ffn, 1}));
    };
    const Tensor gate = half(0), up = half(ffn);
    moves("SwiGLU forward", 3 * one, [&] { swiglu(gate, up); });
    const Tensor y = swiglu(gate, up), g = random({tokens, ffn});
    moves("SwiGLU backward", 5 * one, [&] { backward({y}, {g}); });
  }

  void attention() {
    const std::int64_t tokens = options_.tokens, dim = model_.head_dim;
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(tokens / options_.sequence),
                                            options_.sequence);
    Weights weights{.table = {.model = model_}, .dtype = options_.dtype};
    weights.storage = torch::empty({1}, plain_);
    const AttentionPlan plan = plan_attention(weights, lengths);
    const Tensor q = input(random({tokens, model_.query_heads, dim}));
    const Tensor k = input(random({tokens, model_.kv_heads, dim}));
    const Tensor v = input(random({tokens, model_.kv_heads, dim}));
    const double causal = 2.0 * static_cast<double>(tokens) *
                          static_cast<double>(options_.sequence * model_.query_heads * dim);
    multiplies("causal attention forward", causal, 0, [&] { attend(plan, q, k, v); });
    const Tensor out = attend(plan, q, k, v), g = random(out.sizes());
    multiplies("causal attention backward", 2.5 * causal, 0, [&] { backward({out}, {g}); });
  }

  /// Matrix products: their own ceiling is the best of them.
  void products() {
    const ParallelLayout alone{{}, 0, {{0, 1}}};
    ModelSpec one = model_;
    one.layers = 1;
    const Weights weights =
        make_weights(parameter_table(one), alone, {}, options_.dtype, site_.device);
    const auto timed = time_products(weights, options_.tokens, options_.repetitions);
    for (const TimedProduct& each : timed) best_ = std::max(best_, each.flops() / each.seconds);
    for (const TimedProduct& each : timed) {
      rows_.push_back({{"kernel", each.name + " product"},
                       {"seconds", each.seconds},
                       {"flops", each.flops()},
                       {"tflops", each.flops() / each.seconds * 1e-12},
                       {"ceiling", "best product"},
                       {"of_ceiling", each.flops() / each.seconds / best_}});
    }
  }

  void scores() {
    constexpr std::int64_t kRows = 4096;
    const std::int64_t rows = std::min(options_.tokens, kRows);
    const Tensor hidden = input(random({rows, model_.hidden}));
    const Tensor head = parameter({model_.vocab, model_.hidden});
    const Tensor targets = torch::randint(model_.vocab, {rows}, plain_.dtype(at::kLong));
    const Interval vocab{0, model_.vocab};
    const double product =
        2.0 * static_cast<double>(rows) * static_cast<double>(model_.vocab * model_.hidden);
    const ScoreOptions options{.entropy = false};
    const auto forward = [&] {
      return score_tokens(hidden, head, vocab, targets, nullptr, options).log_prob;
    };
    multiplies("linear + log-prob forward", product, best_, [&] { forward(); });
    const Tensor out = forward(), g = torch::randn({rows}, wide_);
    // The logits are made again: three products.
    multiplies("linear + log-prob backward", 3 * product, best_, [&] { backward({out}, {g}); });
  }

  void optimizer() {
    const torch::NoGradGuard no_grad;
    const std::int64_t count = options_.optimizer_elements;
    const Tensor master = torch::randn({count}, wide_), gradient = torch::randn({count}, wide_);
    const Tensor first = torch::zeros({count}, wide_), second = torch::zeros({count}, wide_);
    const Tensor values = options_.dtype == DType::bf16 ? torch::empty({count}, plain_) : Tensor();
    const auto elements = static_cast<double>(count);
    if (fused::usable(master)) {
      const Tensor table = fused::chunk_table({{0, count, 0.01}}, site_.device);
      moves("gradient norm", 4 * elements, [&] { fused::sum_of_squares(gradient, table); });
      const Tensor squares = fused::sum_of_squares(gradient, table);
      moves("AdamW", (values.defined() ? 30 : 28) * elements, [&] {
        fused::adamw({.learning_rate = 1e-5, .clip_norm = 1}, table, squares, gradient, master,
                     first, second, values);
      });
      return;
    }
    moves("gradient norm", 4 * elements, [&] { at::norm(gradient); });
    const Tensor step = torch::ones({}, wide_);
    moves("AdamW", 28 * elements, [&] {
      at::_fused_adamw_({master}, {gradient}, {first}, {second}, {}, {step}, 1e-5, 0.9, 0.999, 0.01,
                        1e-8, false, false);
    });
  }

  /// Times what an incremental or verified reshard reads once more, and the sums' way to the host.
  void sums_of_ranges() {
    const std::int64_t bytes = site_.gpu() ? std::int64_t{1} << 31 : std::int64_t{1} << 24;
    const Tensor weights = torch::ones({bytes}, plain_.dtype(at::kByte));
    const auto* data = static_cast<const std::byte*>(weights.const_data_ptr());
    std::vector<MemoryRange> ranges;
    constexpr std::int64_t kPiece = std::int64_t{4} << 20;
    for (std::int64_t at = 0; at < bytes; at += kPiece) {
      ranges.push_back({data + at, static_cast<std::size_t>(std::min(kPiece, bytes - at))});
    }
    const auto device_ops =
        site_.gpu() ? make_torch_memory_ops(site_.device.index()) : std::unique_ptr<MemoryOps>();
    MemoryOps& ops = device_ops != nullptr ? *device_ops : host_memory_ops();
    moves("sums of ranges", static_cast<double>(bytes), [&] { ops.checksums(ranges); });
  }

  const BenchSite& site_;
  const ModelSpec& model_;
  const KernelsBenchOptions& options_;
  torch::TensorOptions plain_, wide_;
  double element_, copy_ = 0, best_ = 0;
  json rows_ = json::array();
};

}  // namespace

json bench_kernels(const BenchSite& site, const ModelSpec& model,
                   const KernelsBenchOptions& options) {
  return KernelsBench(site, model, options).run();
}

std::string kernels_table(const json& result) {
  char line[200];
  std::string text;
  std::snprintf(line, sizeof line, "%lld tokens, %s; copy %.2f TB/s\n",
                result["tokens"].get<long long>(),
                result["fused"].get<bool>() ? "fused kernels" : "reference operators",
                result["copy_tb_per_s"].get<double>());
  text += line;
  for (const json& row : result["kernels"]) {
    const bool moves = row.contains("bytes");
    std::snprintf(line, sizeof line, "  %-30s %10.3f ms %9.2f %-7s",
                  row["kernel"].get<std::string>().c_str(), row["seconds"].get<double>() * 1e3,
                  row[moves ? "tb_per_s" : "tflops"].get<double>(), moves ? "TB/s" : "TFLOP/s");
    text += line;
    if (row.contains("of_ceiling")) {
      std::snprintf(line, sizeof line, "  %5.1f %% of %s", row["of_ceiling"].get<double>() * 100,
                    row["ceiling"].get<std::string>().c_str());
      text += line;
    }
    text += "\n";
  }
  return text;
}

}  // namespace tessera
