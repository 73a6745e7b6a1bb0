#include "executor/correction/rollout_correction.h"

#include <charconv>
#include <numeric>

#include "cost_models/documents/check.h"
#include "cost_models/spec/enum_names.h"
#include "executor/correction/correction_parts.h"

namespace tessera {
namespace {

std::string_view stripped(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<double> number_from(std::string_view text) {
  text = stripped(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value > 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = stripped(text.substr(0, comma));
    if (!part.empty()) parts.push_back(part);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return parts;
}

constexpr auto kLevels = enum_names<RejectionLevel>({{RejectionLevel::token, "token_k"},
                                                     {RejectionLevel::sequence_sum, "seq_sum_k"},
                                                     {RejectionLevel::sequence_mean, "seq_mean_k"},
                                                     {RejectionLevel::sequence_max, "seq_max_k"}});

/// The statistic of an option's name, without bounds.
std::optional<Rejection> rejection_named(std::string_view name) {
  for (const auto& [level, prefix] : kLevels.pairs) {
    if (name.size() != prefix.size() + 1 || !name.starts_with(prefix)) continue;
    const int estimator = name.back() - '0';
    const int least = level == RejectionLevel::sequence_max ? 2 : 1;
    if (estimator < least || estimator > 3) return std::nullopt;
    return Rejection{.name = std::string(name), .level = level, .estimator = estimator};
  }
  return std::nullopt;
}

/// Sets the bounds; false where the text does not suit the statistic.
bool set_bounds(Rejection& rejection, std::string_view text) {
  const std::optional<WeightBounds> bounds = weight_bounds_from(text);
  if (!bounds) return false;
  if (rejection.estimator == 1) {
    rejection.lower = std::log(bounds->lower.value_or(1 / bounds->upper));
    rejection.upper = std::log(bounds->upper);
    return *rejection.lower <= rejection.upper;
  }
  rejection.upper = bounds->upper;
  return !bounds->lower;
}

}  // namespace

double mean_of(View values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

double deviation_of(View values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double largest(View values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}
double smallest(View values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

Array valid_of(const Rows& rows, View values) {
  Array valid;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (rows.valid(static_cast<std::int64_t>(i))) valid.push_back(values[i]);
  }
  return valid;
}

Array of_nonempty_rows(const Rows& rows, View per_row) {
  Array values;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    if (rows.valid_in(row) > 0) values.push_back(per_row[row]);
  }
  return values;
}

double clamped_deviation(const Rows& rows, View values, double low, double high) {
  if (rows.valid_entries() < 2) return 0;
  const Array clamped = mapped(values, [&](double x) { return std::min(std::max(x, low), high); });
  const double mean = masked_mean(rows, clamped);
  const double squares = masked_mean(rows, mapped(clamped, [](double x) { return x * x; }));
  return std::sqrt(std::max(squares - mean * mean, 0.0));
}

std::optional<WeightBounds> weight_bounds_from(std::string_view text) {
  const std::size_t between = text.find('_');
  if (between == std::string_view::npos) {
    const std::optional<double> upper = number_from(text);
    return upper ? std::optional(WeightBounds{.upper = *upper}) : std::nullopt;
  }
  const std::optional<double> lower = number_from(text.substr(0, between));
  const std::optional<double> upper = number_from(text.substr(between + 1));
  if (!lower || !upper || *lower > *upper) return std::nullopt;
  return WeightBounds{.upper = *upper, .lower = lower};
}

std::optional<std::vector<Rejection>> rejections_from(std::string_view options,
                                                      std::string_view thresholds) {
  std::vector<Rejection> rejections;
  for (const std::string_view name : parts_of(options)) {
    const bool known = std::any_of(rejections.begin(), rejections.end(),
                                   [&](const Rejection& each) { return each.name == name; });
    if (known) continue;
    const std::optional<Rejection> rejection = rejection_named(name);
    if (!rejection) return std::nullopt;
    rejections.push_back(*rejection);
  }
  const std::vector<std::string_view> bounds = parts_of(thresholds);
  if (rejections.empty() || (bounds.size() != 1 && bounds.size() != rejections.size())) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < rejections.size(); ++i) {
    if (!set_bounds(rejections[i], bounds[bounds.size() == 1 ? 0 : i])) return std::nullopt;
  }
  return rejections;
}

Correction correct_rollout(const Rows& rows, View trained_log_prob, View rollout_log_prob,
                           const RolloutCorrection& options) {
  const auto entries = static_cast<std::size_t>(rows.entries());
  TESSERA_CHECK(trained_log_prob.size() == entries && rollout_log_prob.size() == entries);
  Correction result;
  result.kept = rows.mask.empty() ? std::vector<std::uint8_t>(entries, 1) : rows.mask;
  if (options.rollout_is != WeightLevel::none) result.weights.assign(entries, 0.0);
  if (rows.valid_entries() == 0) return result;

  Array log_ratio(trained_log_prob.begin(), trained_log_prob.end());
  for (std::size_t i = 0; i < entries; ++i) log_ratio[i] -= rollout_log_prob[i];
  Metrics metrics;
  if (options.rollout_is != WeightLevel::none) {
    result.weights = rollout_weights(rows, log_ratio, options, metrics);
  }
  if (!options.rejections.empty()) {
    result.kept = rejection_mask(rows, log_ratio, options.rejections, metrics);
  }
  add_off_policy_metrics(rows, trained_log_prob, rollout_log_prob, metrics);
  for (const auto& [name, value] : metrics) result.metrics["rollout_corr/" + name] = value;
  return result;
}

}  // namespace tessera
