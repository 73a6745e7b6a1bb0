// From a loss per token to one number: verl's five modes (`actor.loss_agg_mode`).
//
// Every mode is linear, loss = sum of weight x token loss, so the weights are also the gradient.
// With the counts of the whole mini-batch over all ranks, the losses of micro-batches add up and
// data-parallel ranks average (dp_size undoes that average). Source: verl 0.9.1,
// trainer/ppo/core_algos.agg_loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "executor/rl/rows.h"

namespace tessera {

enum class AggregationMode : std::uint8_t {
  token_mean,
  token_sum,
  seq_mean_token_sum,
  seq_mean_token_mean,
  seq_mean_token_sum_norm,
};
/// verl's spelling ("token-mean", ...).
std::string_view name_of(AggregationMode mode);

struct Aggregation {
  AggregationMode mode = AggregationMode::token_mean;
  /// Valid tokens of the mini-batch over all ranks; unset = those of the rows at hand.
  std::optional<std::int64_t> batch_num_tokens;
  /// Sequences of the mini-batch over all ranks, empty ones included; unset = the non-empty rows.
  std::optional<std::int64_t> global_batch_size;
  std::int64_t dp_size = 1;
  /// Divisor of seq-mean-token-sum-norm; unset = the padded width.
  std::optional<double> loss_scale_factor;
};

/// The weight of every entry; 0 where it is not valid.
Array aggregation_weights(const Rows& rows, const Aggregation& aggregation);

/// Sum of weight x value; entries of weight 0 are not read.
double weighted_sum(View weights, View values);

double aggregate(const Rows& rows, View values, const Aggregation& aggregation);

}  // namespace tessera
