#include "executor/rl/aggregate.h"

#include "cost_models/documents/check.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kNames = enum_names<AggregationMode>({
    {AggregationMode::token_mean, "token-mean"},
    {AggregationMode::token_sum, "token-sum"},
    {AggregationMode::seq_mean_token_sum, "seq-mean-token-sum"},
    {AggregationMode::seq_mean_token_mean, "seq-mean-token-mean"},
    {AggregationMode::seq_mean_token_sum_norm, "seq-mean-token-sum-norm"},
});

/// x / y, or 0 for a batch without anything to count.
double over(double x, double y) { return y > 0 ? x / y : 0; }

}  // namespace

std::string_view name_of(AggregationMode mode) { return kNames[mode]; }

Array aggregation_weights(const Rows& rows, const Aggregation& aggregation) {
  const auto dp = static_cast<double>(aggregation.dp_size);
  const auto tokens =
      static_cast<double>(aggregation.batch_num_tokens.value_or(rows.valid_entries()));
  const auto sequences =
      static_cast<double>(aggregation.global_batch_size.value_or(rows.nonempty_rows()));
  const double scale = aggregation.loss_scale_factor.value_or(static_cast<double>(rows.width()));

  Array weights(static_cast<std::size_t>(rows.entries()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    double weight = 0;
    switch (aggregation.mode) {
      case AggregationMode::token_mean:
        weight = over(dp, tokens);
        break;
      case AggregationMode::token_sum:
        weight = dp;
        break;
      case AggregationMode::seq_mean_token_sum:
        weight = over(dp, sequences);
        break;
      case AggregationMode::seq_mean_token_mean:
        weight = over(over(dp, sequences), static_cast<double>(rows.valid_in(row)));
        break;
      case AggregationMode::seq_mean_token_sum_norm:
        weight = over(over(dp, sequences), scale);
        break;
    }
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (rows.valid(i)) weights[static_cast<std::size_t>(i)] = weight;
    }
  }
  return weights;
}

double weighted_sum(View weights, View values) {
  TESSERA_CHECK(weights.size() == values.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0) sum += weights[i] * values[i];
  }
  return sum;
}

double aggregate(const Rows& rows, View values, const Aggregation& aggregation) {
  return weighted_sum(aggregation_weights(rows, aggregation), values);
}

}  // namespace tessera
