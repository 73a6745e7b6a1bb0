#include "cost_models/fit/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "cost_models/collective.h"
#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/linear_fit.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kSampleKinds =
    enum_names<SampleKind>({{SampleKind::matmul, "matmul"},
                            {SampleKind::stream, "stream"},
                            {SampleKind::dispatch, "dispatch"},
                            {SampleKind::backward_dispatch, "backward_dispatch"},
                            {SampleKind::collective, "collective"},
                            {SampleKind::host_copy, "host_copy"},
                            {SampleKind::decode_step, "decode_step"},
                            {SampleKind::call, "call"},
                            {SampleKind::attention, "attention"},
                            {SampleKind::attention_backward, "attention_backward"},
                            {SampleKind::waiting, "waiting"},
                            {SampleKind::sustained, "sustained"},
                            {SampleKind::beside, "beside"}});

// State of one call of fit_calibration.
class Fitting {
 public:
  Fitting(const Calibration& base, const FitContext& context, std::vector<FitReport>& report,
          Problems& problems)
      : result_(base), context_(context), report_(report), problems_(problems) {
    result_.cores = context.cores;
    result_.ranks = context.busy_ranks;
    result_.created = context.created;
  }

  void fit(std::span<const CalibrationSample> samples) {
    fit_each(samples, SampleKind::dispatch, result_.dispatch_s);
    fit_each(samples, SampleKind::backward_dispatch, result_.backward_dispatch_s);
    fit_each(samples, SampleKind::decode_step, result_.decode_step_s);
    fit_each(samples, SampleKind::call, result_.call_s);
    fit_waiting(of_kind(samples, SampleKind::waiting));
    fit_stream(of_kind(samples, SampleKind::stream));
    fit_host_copy(of_kind(samples, SampleKind::host_copy));
    fit_matmul(of_kind(samples, SampleKind::matmul));
    fit_sustained(of_kind(samples, SampleKind::sustained));
    fit_beside(of_kind(samples, SampleKind::beside));
    fit_attention(of_kind(samples, SampleKind::attention),
                  of_kind(samples, SampleKind::attention_backward));
    fit_collectives(of_kind(samples, SampleKind::collective));
  }

  Calibration take() { return std::move(result_); }

 private:
  // Samples of a kind; kernels are freed of the dispatch in them, and left out where that is most.
  Samples of_kind(std::span<const CalibrationSample> samples, SampleKind kind) const {
    const bool kernel = kind == SampleKind::matmul || kind == SampleKind::stream;
    Samples chosen;
    for (CalibrationSample sample : samples) {
      if (sample.kind != kind || !(sample.seconds > 0)) continue;
      if (kernel && !result_.overlapped_dispatch) {
        const double operators = kind == SampleKind::stream ? std::max(1.0, sample.sizes[1]) : 1;
        const Seconds dispatch{operators * result_.dispatch_s.value};
        sample.seconds -= dispatch;
        if (sample.seconds < dispatch) continue;
      }
      chosen.push_back(sample);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) {
      return std::tie(a.collective, a.nodes, a.ranks, a.sizes) <
             std::tie(b.collective, b.nodes, b.ranks, b.sizes);
    });
    return chosen;
  }

  bool enough(const Samples& samples, std::size_t least, const std::string& what) {
    if (samples.size() >= least) return true;
    if (!samples.empty()) {
      problems_.push_back({context_.origin, what, std::to_string(samples.size()) + " samples",
                           "at least " + std::to_string(least),
                           "the shipped constants stay in place"});
    }
    return false;
  }

  // The fit's coefficients are times; `inverse` is the index of one whose constant is a rate, which
  // deviates the other way.
  void keep_covariance(std::vector<std::string> of, const LinearFit& fit, std::size_t inverse,
                       std::size_t also = 99) {
    FitCovariance kept{std::move(of), fit.covariance};
    const std::size_t n = kept.of.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const bool rate_i = i == inverse || i == also, rate_j = j == inverse || j == also;
        if (rate_i != rate_j) kept.relative[i * n + j] *= -1;
      }
    }
    std::erase_if(result_.covariances,
                  [&](const FitCovariance& other) { return other.of == kept.of; });
    result_.covariances.push_back(std::move(kept));
  }

  void set(Constant& constant, double value, double error, double held_out) const {
    if (!(value > 0) || !std::isfinite(value)) return;  // the samples do not show this term
    constant = {value, std::hypot(error, held_out), true, context_.origin};
  }

  void fit_each(std::span<const CalibrationSample> all, SampleKind kind, Constant& constant) {
    const Samples samples = of_kind(all, kind);
    if (samples.empty()) return;
    std::vector<double> each;
    for (const auto& sample : samples)
      each.push_back(sample.seconds / std::max(1.0, sample.sizes[0]));
    const double median = quantile(each, 0.5);
    std::vector<double> deviation;
    for (const double value : each) deviation.push_back(std::abs(value / median - 1));
    set(constant, median, 1.4826 * quantile(deviation, 0.5), 0);
  }

  // share = cores / (busy + waiting x idle_share) is what a busy rank got of a core.
  void fit_waiting(const Samples& samples) {
    std::vector<double> each;
    for (const auto& [kind, sizes, seconds, collective, ranks, nodes] : samples) {
      const auto [busy, waiting, used] = sizes;
      if (!(used > 0) || !(waiting > 0)) continue;
      each.push_back(
          std::clamp((context_.cores * seconds.value / used - busy) / waiting, 0.0, 1.0));
    }
    if (each.empty()) return;
    result_.idle_share = {quantile(each, 0.5), 0, true, context_.origin};
  }

  void fit_stream(const Samples& samples) {
    if (!enough(samples, 3, "stream")) return;
    const FeaturesOf features = [](const auto& sample) {
      return Features{std::max(1.0, sample.sizes[1]), sample.sizes[0]};
    };
    const FitReport held = report_linear("stream", samples, features);
    const LinearFit fit = fit_linear(samples, features);
    set(result_.kernel_floor_s, fit.coefficient[0], fit.error[0], held.median_error);
    set(result_.stream_bandwidth, 1 / fit.coefficient[1], fit.error[1], held.median_error);
  }

  void fit_host_copy(const Samples& samples) {
    if (!enough(samples, 2, "host_copy")) return;
    const FeaturesOf features = [](const auto& sample) { return Features{sample.sizes[0]}; };
    const FitReport held = report_linear("host_copy", samples, features);
    const LinearFit fit = fit_linear(samples, features);
    set(result_.host_bandwidth, 1 / fit.coefficient[0], fit.error[0], held.median_error);
  }

  void fit_collectives(const Samples& all) {
    std::map<std::tuple<Collective, int, int>, Samples> groups;
    for (const auto& sample : all) {
      groups[{sample.collective, sample.ranks, sample.nodes}].push_back(sample);
    }
    for (const auto& [key, samples] : groups) {
      const auto [collective, ranks, nodes] = key;
      const std::string what = std::string(name_of(collective)) + "/" + std::to_string(ranks) +
                               "x" + std::to_string(nodes);
      if (!enough(samples, 4, what)) continue;
      const FeaturesOf features = [](const auto& sample) {
        const double wire = wire_bytes(sample.collective, Traffic{sample.sizes[0]}, sample.ranks);
        return Features{1, wire, std::sqrt(wire / 1e6)};
      };
      const FitReport held = report_linear(what, samples, features);
      const LinearFit fit = fit_linear(samples, features);
      if (!(fit.coefficient[1] > 0)) continue;
      std::erase_if(result_.collectives, [&](const CollectiveConstants& entry) {
        return entry.collective == collective && entry.ranks == ranks && entry.nodes == nodes;
      });
      result_.collectives.push_back({collective, ranks, nodes, Seconds{fit.coefficient[0]},
                                     BytesPerSecond{1 / fit.coefficient[1]},
                                     Seconds{fit.coefficient[2]}, held.median_error, true,
                                     context_.origin});
      keep_covariance({what + ".alpha_s", what + ".bytes_per_s", what + ".ramp_s"}, fit, 1);
    }
  }

  Features matmul_features(const CalibrationSample& sample, bool compute_bound) const {
    const auto [m, n, k] = sample.sizes;
    const double ratio = result_.matmul.at(sample.sizes);
    const double factor = context_.dtype == DType::fp32 ? result_.fp32_factor.value : 1.0;
    const double flops = 2 * m * n * k * factor;
    const double bytes = static_cast<double>(size_of(context_.dtype)) * (m * k + n * k + m * n);
    return {ratio, compute_bound ? ratio * flops : 0, compute_bound ? 0 : ratio * bytes};
  }

  // Seconds per floor, per flop and per byte under the base's ratio table.
  LinearFit fit_roofline(const Samples& samples) const {
    double per_flop = 1 / result_.matmul_flops.value;
    double per_byte = 1 / result_.memory_bandwidth.value;
    const auto compute_bound = [&](const CalibrationSample& sample) {
      return matmul_features(sample, true)[1] * per_flop >=
             matmul_features(sample, false)[2] * per_byte;
    };
    LinearFit fit;
    for (int round = 0; round < 12; ++round) {
      fit = fit_linear(samples, [&](const CalibrationSample& sample) {
        return matmul_features(sample, compute_bound(sample));
      });
      const double next_flop = fit.coefficient[1] > 0 ? fit.coefficient[1] : per_flop;
      const double next_byte = fit.coefficient[2] > 0 ? fit.coefficient[2] : per_byte;
      const bool settled = next_flop == per_flop && next_byte == per_byte;
      per_flop = next_flop;
      per_byte = next_byte;
      if (settled) break;
    }
    fit.seen = {true, fit.coefficient[1] > 0, fit.coefficient[2] > 0};
    fit.coefficient = {fit.coefficient[0], per_flop, per_byte};
    return fit;
  }

  double predict_matmul(const LinearFit& fit, const CalibrationSample& sample) const {
    return std::max(fit.predict(matmul_features(sample, true)),
                    fit.predict(matmul_features(sample, false)));
  }

  void fit_matmul(const Samples& samples) {
    if (!enough(samples, 5, "matmul")) return;
    const FitReport held = held_out_report("matmul", samples, [&](const Samples& used) {
      return [this, fit = fit_roofline(used)](const CalibrationSample& sample) {
        return predict_matmul(fit, sample);
      };
    });
    report_.push_back(held);
    const LinearFit fit = fit_roofline(samples);
    set(result_.matmul_floor_s, fit.coefficient[0], fit.error[0], held.median_error);
    keep_covariance({"matmul_floor_s", "matmul_flop_per_s", "memory_bytes_per_s"}, fit, 1, 2);
    if (fit.seen[1]) {
      set(result_.matmul_flops, 1 / fit.coefficient[1], fit.error[1], held.median_error);
    }
    if (fit.seen[2]) {
      set(result_.memory_bandwidth, 1 / fit.coefficient[2], fit.error[2], held.median_error);
    }
  }

  // All products together: long ones count as they do in a step.
  void fit_sustained(const Samples& samples) {
    if (!enough(samples, 3, "sustained")) return;
    Seconds measured, burst;
    std::vector<double> ratio;
    for (const auto& sample : samples) {
      const auto [m, n, k] = sample.sizes;
      const Seconds alone = matmul_seconds(m, n, k, context_.dtype, result_);
      measured += sample.seconds;
      burst += alone;
      ratio.push_back(sample.seconds / alone);
    }
    const double mean = measured / burst;
    for (double& each : ratio) each = std::abs(each / mean - 1);
    // The products' own deviations average out over a step's.
    const double error = quantile(ratio, 0.5) / std::sqrt(static_cast<double>(samples.size()));
    set(result_.sustained, mean, error, 0);
  }

  // In `seconds` the device did the work of `kernels` and `collectives` alone.
  void fit_beside(const Samples& samples) {
    std::vector<double> each;
    for (const auto& sample : samples) {
      const auto [kernels, collectives, unused] = sample.sizes;
      if (!(collectives > 0)) continue;
      each.push_back(1 + std::max(0.0, sample.seconds.value - kernels) / collectives);
    }
    if (each.empty()) return;
    const double middle = quantile(each, 0.5);
    std::vector<double> deviation;
    for (const double value : each) deviation.push_back(std::abs(value / middle - 1));
    set(result_.overlap_slowdown, middle, quantile(deviation, 0.9), 0);
  }

  // Measured over roofline time, by (pairs, length); the backward pass by its median ratio.
  void fit_attention(const Samples& forward, const Samples& backward) {
    if (!enough(forward, 4, "attention")) return;
    std::array<std::set<double>, 2> axes;
    for (const auto& sample : forward) {
      for (std::size_t axis : {0, 1}) axes[axis].insert(sample.sizes[axis]);
    }
    if (axes[0].size() * axes[1].size() != forward.size()) return;  // no grid
    result_.attention_floor_s = {0, 0, true, context_.origin};
    result_.prefill = {};
    RatioTable table{.origin = context_.origin, .measured = true};
    for (const auto& axis : axes) table.axes.emplace_back(axis.begin(), axis.end());
    for (const auto& sample : forward) {  // sorted by sizes: row major
      table.ratio.push_back(sample.seconds / attention_roofline(sample));
    }
    result_.prefill = std::move(table);
    std::vector<double> factor;
    for (const auto& sample : backward) {
      factor.push_back(sample.seconds / attention_roofline(sample));
    }
    if (!factor.empty())
      result_.attention_backward = {quantile(factor, 0.5), 0, true, context_.origin};
  }

  double attention_roofline(const CalibrationSample& sample) const {
    const auto [pairs, length, dim] = sample.sizes;
    const RankModel heads{
        {},
        {.query_heads = 1, .kv_heads = 1, .head_dim = static_cast<std::int64_t>(dim)},
        context_.dtype};
    return layer_attention_seconds(heads, {pairs * length, pairs, pairs * length * length},
                                   result_);
  }

  FitReport report_linear(const std::string& what, const Samples& samples,
                          const FeaturesOf& features) {
    report_.push_back(held_out_report(what, samples, [&](const Samples& used) {
      return [&features, fit = fit_linear(used, features)](const CalibrationSample& sample) {
        return fit.predict(features(sample));
      };
    }));
    return report_.back();
  }

  Calibration result_;
  const FitContext& context_;
  std::vector<FitReport>& report_;
  Problems& problems_;
};

}  // namespace

std::string_view name_of(SampleKind kind) { return kSampleKinds[kind]; }

Calibration fit_calibration(const Calibration& base, std::span<const CalibrationSample> samples,
                            const FitContext& context, std::vector<FitReport>& report,
                            Problems& problems) {
  Fitting fitting(base, context, report, problems);
  fitting.fit(samples);
  Calibration fitted = fitting.take();
  fitted.note =
      "Measured by " + context.origin + ". What that does not measure is of '" + base.name + "'.";
  return fitted;
}

}  // namespace tessera
