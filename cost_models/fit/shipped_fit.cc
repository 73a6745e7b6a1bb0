#include "cost_models/fit/shipped_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

constexpr double kMicro = 1e-6;

std::optional<Document> read(const std::filesystem::path& file, Problems& problems) {
  const auto text = read_text_file(file, ParseLimits{}.bytes, problems);
  return text ? parse_json(*text, file.string(), problems) : std::nullopt;
}

const Node* device(const Document& document, const std::string& name) {
  const Node* gpus = document.root.find("gpus");
  return gpus == nullptr ? nullptr : gpus->find(name);
}

double value(const Node& node, std::string_view key) {
  const Node* found = node.find(key);
  return found == nullptr ? 0 : found->number;
}

std::vector<double> numbers(const Node* list) {
  std::vector<double> values;
  if (list == nullptr) return values;
  for (const Node& item : list->items) values.push_back(item.number);
  return values;
}

// Position of the axis value that a number is, or nullopt.
std::optional<std::size_t> index_of(const std::vector<double>& axis, double number) {
  const auto found = std::find(axis.begin(), axis.end(), number);
  if (found == axis.end()) return std::nullopt;
  return static_cast<std::size_t>(found - axis.begin());
}

// Four digits carry what the measurements do.
double rounded(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", number);
  return std::strtod(text.data(), nullptr);
}

void set_cell(RatioTable& table, std::vector<std::optional<std::size_t>> at, double ratio) {
  std::size_t index = 0;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (!at[d]) return;
    index = index * table.axes[d].size() + *at[d];
  }
  table.ratio[index] = rounded(ratio);
}

// Every measured GEMM as a sample; those on the table's axes become its cells.
std::vector<CalibrationSample> matmul_samples(const Node& gpu, const std::vector<double>& rows,
                                              Calibration& calibration) {
  const double peak = value(gpu, "peak_flops"), bandwidth = value(gpu, "hbm_bytes_s");
  const double floor = 2.5e-6;  // of the data's own roofline
  std::vector<CalibrationSample> samples;
  const Node* cells = gpu.find("table");
  if (cells == nullptr) return samples;
  for (const Node& cell : cells->items) {
    const double n = value(cell, "n"), k = value(cell, "k");
    const std::vector<double> times = numbers(cell.find("us"));
    for (std::size_t i = 0; i < times.size() && i < rows.size(); ++i) {
      const double m = rows[i], seconds = times[i] * kMicro;
      const double ideal =
          floor + std::max(2 * m * n * k / peak, 2 * (m * k + n * k + m * n) / bandwidth);
      RatioTable& table = calibration.matmul;
      set_cell(table,
               {index_of(table.axes[0], m), index_of(table.axes[1], n), index_of(table.axes[2], k)},
               seconds / ideal);
      samples.push_back(
          {.kind = SampleKind::matmul, .sizes = {m, n, k}, .seconds = Seconds{seconds}});
    }
  }
  return samples;
}

void cut_prefill(const Node& gpu, const std::vector<double>& lengths, Calibration& calibration) {
  const double peak = value(gpu, "peak_flops"), bandwidth = value(gpu, "hbm_bytes_s");
  const Node* cells = gpu.find("prefill");
  if (cells == nullptr) return;
  RatioTable& table = calibration.prefill;
  for (const Node& cell : cells->items) {
    const double pairs = value(cell, "pairs");
    const std::vector<double> times = numbers(cell.find("us"));
    for (std::size_t i = 0; i < times.size() && i < lengths.size(); ++i) {
      const double length = lengths[i];
      const double ideal =
          calibration.attention_floor_s.value +
          std::max(256 * pairs * length * length / peak, 1024 * pairs * length / bandwidth);
      set_cell(table, {index_of(table.axes[0], pairs), index_of(table.axes[1], length)},
               times[i] * kMicro / ideal);
    }
  }
}

void cut_decode(const Node& gpu, const std::vector<double>& contexts, Calibration& calibration) {
  const double bandwidth = value(gpu, "hbm_bytes_s");
  const Node* cells = gpu.find("decode");
  if (cells == nullptr) return;
  RatioTable& table = calibration.decode;
  for (const Node& cell : cells->items) {
    const double pairs = value(cell, "pairs"), group = value(cell, "group");
    const std::vector<double> times = numbers(cell.find("us"));
    for (std::size_t i = 0; i < times.size() && i < contexts.size(); ++i) {
      const double ideal =
          calibration.attention_floor_s.value + 512 * pairs * contexts[i] / bandwidth;
      set_cell(table,
               {index_of(table.axes[0], group), index_of(table.axes[1], pairs),
                index_of(table.axes[2], contexts[i])},
               times[i] * kMicro / ideal);
    }
  }
}

// Curves of NCCL without switch reduction: the 8-bit all-reduce has the same byte counts and takes
// none (calibration_tables 9).
std::vector<CalibrationSample> collective_samples(const Node& gpu) {
  std::vector<CalibrationSample> samples;
  const Node* curves = gpu.find("collectives");
  if (curves == nullptr) return samples;
  const auto name_of_curve = [](const Node& curve) {
    const Node* name = curve.find("collective");
    return name == nullptr ? std::string() : name->text;
  };
  const auto has_plain = [&](double ranks) {
    return std::any_of(curves->items.begin(), curves->items.end(), [&](const Node& curve) {
      return name_of_curve(curve) == "all_reduce_int8" && value(curve, "n") == ranks;
    });
  };
  for (const Node& curve : curves->items) {
    std::string name = name_of_curve(curve);
    const double ranks = value(curve, "n");
    if (name == "all_reduce" && has_plain(ranks)) continue;
    if (name == "all_reduce_int8") name = "all_reduce";
    if (name == "alltoall") name = "all_to_all";
    const auto collective = collective_from(name);
    if (!collective) continue;
    double bytes = value(curve, "first_bytes");
    for (const double time : numbers(curve.find("us"))) {
      samples.push_back({.kind = SampleKind::collective,
                         .sizes = {bytes, 0, 0},
                         .seconds = Seconds{time * kMicro},
                         .collective = *collective,
                         .ranks = static_cast<int>(ranks)});
      bytes *= 2;
    }
  }
  return samples;
}

void mark_as_shipped(Calibration& calibration) {
  for (const NamedConstant& named : kConstants) (calibration.*named.member).measured = false;
  for (CollectiveConstants& entry : calibration.collectives) entry.measured = false;
}

}  // namespace

std::optional<PublishedTables> read_published_tables(const std::filesystem::path& folder,
                                                     Problems& problems) {
  auto matmul = read(folder / "gemm_bf16_aiconfigurator.json", problems);
  auto attention = read(folder / "attention_bf16_aiconfigurator.json", problems);
  auto collectives = read(folder / "collectives_aiconfigurator.json", problems);
  if (!matmul || !attention || !collectives) return std::nullopt;
  return PublishedTables{*std::move(matmul), *std::move(attention), *std::move(collectives)};
}

Calibration fit_shipped(const Calibration& base, const PublishedTables& tables,
                        std::vector<FitReport>& report, Problems& problems) {
  Calibration cut = base;
  std::vector<CalibrationSample> samples;
  if (const Node* gpu = device(tables.matmul, base.name)) {
    samples = matmul_samples(*gpu, numbers(tables.matmul.root.find("m")), cut);
  }
  if (const Node* gpu = device(tables.attention, base.name)) {
    cut_prefill(*gpu, numbers(tables.attention.root.find("length")), cut);
    cut_decode(*gpu, numbers(tables.attention.root.find("context")), cut);
  }
  if (const Node* gpu = device(tables.collectives, base.name)) {
    const auto curves = collective_samples(*gpu);
    // Hosts without peer access are not what a plan runs on (calibration_tables 5).
    std::copy_if(curves.begin(), curves.end(), std::back_inserter(samples),
                 [&](const CalibrationSample& s) { return base.name != "l40s" || s.ranks == 2; });
  }
  const FitContext context{.dtype = DType::bf16,
                           .origin =
                               "non-negative least squares on aiconfigurator 0.4.0 "
                               "(Apache-2.0, copyright NVIDIA CORPORATION & AFFILIATES)"};
  Calibration fitted = fit_calibration(cut, samples, context, report, problems);
  // Constants that the data do not show stay the base's, and so do the circumstances.
  fitted.note = base.note;
  fitted.cores = base.cores;
  fitted.ranks = base.ranks;
  fitted.created = base.created;
  mark_as_shipped(fitted);
  for (CollectiveConstants& entry : fitted.collectives) {
    for (Seconds* time : {&entry.alpha_s, &entry.ramp_s}) {
      *time = Seconds{*time > 0 ? rounded(*time) : 0};
    }
    entry.bandwidth = BytesPerSecond{rounded(entry.bandwidth)};
    entry.error = entry.error > 0 ? rounded(entry.error) : 0;
  }
  for (const auto member :
       {&Calibration::matmul_flops, &Calibration::memory_bandwidth, &Calibration::matmul_floor_s}) {
    Constant& constant = fitted.*member;
    constant.value = rounded(constant.value);
    constant.error = constant.error > 0 ? rounded(constant.error) : 0;
  }
  for (FitCovariance& each : fitted.covariances) {
    for (double& entry : each.relative) {
      if (entry != 0) entry = std::copysign(rounded(std::abs(entry)), entry);
    }
  }
  return fitted;
}

Calibration derive_shipped(const Calibration& source, const Calibration& base, double link_ratio) {
  Calibration derived = source;
  derived.name = base.name;
  derived.device = base.device;
  derived.note = base.note;
  for (const NamedConstant& named : kConstants) derived.*named.member = base.*named.member;
  // A rate of the source's fit relative to its data sheet carries over.
  constexpr double kDerivedError = 0.1;
  derived.matmul_flops.error = std::max(base.matmul_flops.error, kDerivedError);
  derived.memory_bandwidth.error = std::max(base.memory_bandwidth.error, kDerivedError);
  derived.matmul_floor_s = source.matmul_floor_s;
  for (CollectiveConstants& entry : derived.collectives) {
    entry.bandwidth = BytesPerSecond{rounded(entry.bandwidth * link_ratio)};
    if (link_ratio != 1) entry.error = std::max(entry.error, kDerivedError);
    entry.origin += link_ratio == 1 ? "; derived from " + source.name
                                    : "; derived from " + source.name + ", scaled to the link";
  }
  return derived;
}

}  // namespace tessera
