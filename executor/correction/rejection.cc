#include "executor/correction/correction_parts.h"

namespace tessera {
namespace {

double estimate(int estimator, double log_ratio) {
  const double d = within_safety(log_ratio);
  if (estimator == 1) return -d;
  return estimator == 2 ? d * d / 2 : std::exp(d) - 1 - d;
}

/// The largest valid entry of each row; 0 of a row without any.
Array largest_of_rows(const Rows& rows, View values) {
  Array result(static_cast<std::size_t>(rows.count()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    bool first = true;
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (!rows.valid(i)) continue;
      const double x = values[static_cast<std::size_t>(i)];
      result[row] = first ? x : std::max(result[row], x);
      first = false;
    }
  }
  return result;
}

/// The statistic of every entry and of every row; a row's fills its entries.
struct Statistic {
  Array entries, rows;
};

Statistic statistic_of(const Rows& rows, View log_ratio, const Rejection& rejection) {
  Statistic result;
  result.entries =
      mapped(rows, log_ratio, [&](double d) { return estimate(rejection.estimator, d); });
  switch (rejection.level) {
    case RejectionLevel::token:
      result.rows = masked_mean_rows(rows, result.entries);
      return result;
    case RejectionLevel::sequence_sum:
      result.rows = masked_sum_rows(rows, result.entries);
      break;
    case RejectionLevel::sequence_mean:
      result.rows = masked_mean_rows(rows, result.entries);
      break;
    case RejectionLevel::sequence_max:
      result.rows = largest_of_rows(rows, result.entries);
      break;
  }
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      result.entries[static_cast<std::size_t>(i)] = result.rows[row];
    }
  }
  return result;
}

void add_metrics(const Rows& rows, const Statistic& statistic, const Rejection& rejection,
                 Metrics& metrics) {
  const std::string name = "rollout_rs_" + rejection.name;
  const Array of_rows = of_nonempty_rows(rows, statistic.rows);
  const Array counted =
      rejection.level == RejectionLevel::token ? valid_of(rows, statistic.entries) : of_rows;
  const auto high = [&](double x) { return x > rejection.upper; };
  const auto low = [&](double x) { return rejection.lower && x < *rejection.lower; };
  metrics[name + "_mean"] = masked_mean(rows, statistic.entries);
  metrics[name + "_max"] = largest(counted);
  metrics[name + "_min"] = smallest(counted);
  metrics[name + "_fraction_high"] = share_of(counted, high);
  metrics[name + "_fraction_low"] = share_of(counted, low);
  metrics[name + "_std"] =
      clamped_deviation(rows, statistic.entries, rejection.low(), rejection.upper);
  metrics[name + "_seq_mean"] = mean_of(of_rows);
  metrics[name + "_seq_std"] = deviation_of(of_rows);
  metrics[name + "_seq_max"] = largest(of_rows);
  metrics[name + "_seq_min"] = smallest(of_rows);
  metrics[name + "_seq_max_deviation"] =
      largest(mapped(of_rows, [](double x) { return std::abs(x); }));
  metrics[name + "_seq_fraction_high"] = share_of(of_rows, high);
  if (rejection.lower) metrics[name + "_seq_fraction_low"] = share_of(of_rows, low);
}

/// Valid entries that `kept` lacks: 1, others 0; and the same of rows with any such entry.
struct Missing {
  Array entries, rows;
};
Missing missing(const Rows& rows, const std::vector<std::uint8_t>& kept) {
  Missing result{Array(kept.size(), 0.0), Array(static_cast<std::size_t>(rows.count()), 0.0)};
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (!rows.valid(i) || kept[static_cast<std::size_t>(i)] != 0) continue;
      result.entries[static_cast<std::size_t>(i)] = 1;
      result.rows[row] = 1;
    }
  }
  return result;
}

}  // namespace

std::vector<std::uint8_t> rejection_mask(const Rows& rows, View log_ratio,
                                         const std::vector<Rejection>& rejections,
                                         Metrics& metrics) {
  std::vector<std::uint8_t> kept(log_ratio.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i] = rows.valid(static_cast<std::int64_t>(i)) ? 1 : 0;
  }
  for (const Rejection& rejection : rejections) {
    const Statistic statistic = statistic_of(rows, log_ratio, rejection);
    add_metrics(rows, statistic, rejection, metrics);
    std::vector<std::uint8_t> passed(kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      passed[i] = rejection.accepts(statistic.entries[i]) ? 1 : 0;
      kept[i] = kept[i] != 0 && passed[i] != 0 ? 1 : 0;
    }
    const Missing by_this = missing(rows, passed);
    const std::string name = "rollout_rs_" + rejection.name;
    metrics[name + "_masked_fraction"] = masked_mean(rows, by_this.entries);
    metrics[name + "_seq_masked_fraction"] = mean_of(of_nonempty_rows(rows, by_this.rows));
  }
  const Missing by_all = missing(rows, kept);
  metrics["rollout_rs_masked_fraction"] = masked_mean(rows, by_all.entries);
  metrics["rollout_rs_seq_masked_fraction"] = mean_of(by_all.rows);
  return kept;
}

}  // namespace tessera
