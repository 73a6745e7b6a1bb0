// Optimal token baselines: one baseline per group and column, the returns G weighted by how much
// the policy could have varied so far, base_t = sum(G W) / (sum(W) + 1e-8) over the group's rows
// that are valid there, W_t = running sum of w, w = 1 - 2 pi + sum of pi^2 over the vocabulary
// (times the squared rollout weight). A group of one has base 0, and so has, unless
// handle_zero_tail is off, the longest row beyond the second longest.
//
// Columns count the row's entries; in the form for tool use (TIR) its valid entries, and rows
// without any leave the group.
#include <algorithm>
#include <cmath>
#include <optional>

#include "cost_models/documents/check.h"
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

/// W of every valid entry, 0 elsewhere.
Array running_variance(const EstimatorInput& input) {
  const std::size_t n = input.rewards.size();
  TESSERA_CHECK(input.old_log_prob.size() == n && input.sum_pi_squared.size() == n);
  Array running(n, 0.0);
  for (std::int64_t row = 0; row < input.rows.count(); ++row) {
    double sum = 0;
    for (std::int64_t i = input.rows.begin[row]; i < input.rows.begin[row + 1]; ++i) {
      if (!input.rows.valid(i)) continue;
      const auto at = static_cast<std::size_t>(i);
      const double weight = input.rollout_is_weights.empty() ? 1 : input.rollout_is_weights[at];
      sum +=
          (1 - 2 * std::exp(input.old_log_prob[at]) + input.sum_pi_squared[at]) * weight * weight;
      running[at] = sum;
    }
  }
  return running;
}

/// The row that alone is the longest of its group by valid entries, and from which column it is
/// alone.
struct Tail {
  std::size_t row = 0;
  std::int64_t from = 0;
};
std::optional<Tail> longest_alone(const Rows& rows, const Group& group) {
  std::vector<std::pair<std::int64_t, std::size_t>> lengths;
  for (const std::size_t row : group) {
    lengths.emplace_back(rows.valid_in(static_cast<std::int64_t>(row)), row);
  }
  std::partial_sort(lengths.begin(), lengths.begin() + 2, lengths.end(), std::greater<>());
  if (lengths[0].first == lengths[1].first) return std::nullopt;
  return Tail{lengths[0].second, lengths[1].first};
}

/// Subtracts the baseline of one group from `advantages`, which hold the returns.
void subtract_baseline(const Rows& rows, const Group& group, View returns, View running,
                       bool handle_zero_tail, Array& advantages) {
  const auto width = static_cast<std::size_t>(rows.width());
  Array weighted(width, 0.0), weights(width, 0.0);
  const auto each_entry = [&](std::size_t row, auto&& visit) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (rows.valid(i))
        visit(static_cast<std::size_t>(i - rows.begin[row]), static_cast<std::size_t>(i));
    }
  };
  for (const std::size_t row : group) {
    each_entry(row, [&](std::size_t column, std::size_t entry) {
      weighted[column] += returns[entry] * running[entry];
      weights[column] += running[entry];
    });
  }
  const std::optional<Tail> tail = handle_zero_tail ? longest_alone(rows, group) : std::nullopt;
  for (const std::size_t row : group) {
    each_entry(row, [&](std::size_t column, std::size_t entry) {
      if (tail && tail->row == row && static_cast<std::int64_t>(column) >= tail->from) return;
      advantages[entry] -= weighted[column] / (weights[column] + 1e-8);
    });
  }
}

Advantages by_column(const EstimatorInput& input, std::span<const Group> groups,
                     const AdvantageOptions& options) {
  const Array running = running_variance(input);
  Advantages result{.returns = rewards_to_go(input.rows, input.rewards)};
  result.advantages = result.returns;
  for (const Group& group : groups) {
    if (group.size() == 1) continue;
    subtract_baseline(input.rows, group, result.returns, running, options.handle_zero_tail,
                      result.advantages);
  }
  return result;
}

Advantages optimal_token_baseline(const EstimatorInput& input, const AdvantageOptions& options) {
  return by_column(input, groups_of(input.rows, input.uid), options);
}

/// The valid entries alone, rows in their order.
struct Packed {
  Rows rows;
  std::vector<std::size_t> entries;  // of the unpacked rows

  Array of(View values) const {
    Array packed;
    for (const std::size_t entry : values.empty() ? std::vector<std::size_t>{} : entries) {
      packed.push_back(values[entry]);
    }
    return packed;
  }
};
Packed pack_valid(const Rows& rows) {
  Packed packed;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (rows.valid(i)) packed.entries.push_back(static_cast<std::size_t>(i));
    }
    packed.rows.begin.push_back(static_cast<std::int64_t>(packed.entries.size()));
  }
  return packed;
}

Advantages tir_optimal_token_baseline(const EstimatorInput& input,
                                      const AdvantageOptions& options) {
  const Packed packed = pack_valid(input.rows);
  std::vector<Group> groups = groups_of(input.rows, input.uid);
  for (Group& group : groups) {
    std::erase_if(group, [&](std::size_t row) {
      return packed.rows.valid_in(static_cast<std::int64_t>(row)) == 0;
    });
  }
  std::erase_if(groups, [](const Group& group) { return group.empty(); });
  const Array rewards = packed.of(input.rewards), old = packed.of(input.old_log_prob),
              squares = packed.of(input.sum_pi_squared),
              weights = packed.of(input.rollout_is_weights);
  const Advantages of_valid = by_column({.rows = packed.rows,
                                         .rewards = rewards,
                                         .old_log_prob = old,
                                         .sum_pi_squared = squares,
                                         .rollout_is_weights = weights},
                                        groups, options);
  Advantages result{Array(input.rewards.size(), 0.0), Array(input.rewards.size(), 0.0)};
  for (std::size_t i = 0; i < packed.entries.size(); ++i) {
    result.advantages[packed.entries[i]] = of_valid.advantages[i];
    result.returns[packed.entries[i]] = of_valid.returns[i];
  }
  return result;
}

constexpr std::array kOptions{
    EstimatorOption{.key = "handle_zero_tail", .flag = &AdvantageOptions::handle_zero_tail}};

}  // namespace

constinit const Estimator kOptimalTokenBaseline{.name = "optimal_token_baseline",
                                                .reads_sum_pi_squared = true,
                                                .options = kOptions,
                                                .compute = optimal_token_baseline};
constinit const Estimator kTirOptimalTokenBaseline{.name = "tir_optimal_token_baseline",
                                                   .reads_sum_pi_squared = true,
                                                   .options = kOptions,
                                                   .compute = tir_optimal_token_baseline};

}  // namespace tessera
