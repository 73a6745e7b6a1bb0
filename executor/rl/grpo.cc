// Group-relative advantages (Shao et al. 2024): the score S of a row is the sum of its whole reward
// row, masked or not; A = (S - mean of the group) / (std of the group + 1e-6), std unbiased, or
// S - mean. A group of one keeps mean 0 and std 1. Returns equal the advantages.
#include <cmath>
#include <unordered_map>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "executor/rl/estimators.h"

namespace tessera {
namespace {

/// Sum of the reward row, holes and padding included.
Array scores_of(const Rows& rows, View rewards) {
  Array scores(static_cast<std::size_t>(rows.count()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      scores[row] += rewards[static_cast<std::size_t>(i)];
    }
  }
  return scores;
}

/// One number per row, on its valid entries.
Array spread(const Rows& rows, View per_row) {
  Array values(static_cast<std::size_t>(rows.entries()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (rows.valid(i)) values[static_cast<std::size_t>(i)] = per_row[row];
    }
  }
  return values;
}

struct GroupStatistics {
  double mean = 0, deviation = 1;  // of a group of one
};

GroupStatistics statistics_of(View scores, std::span<const std::size_t> members) {
  if (members.size() == 1) return {};
  const auto n = static_cast<double>(members.size());
  double mean = 0;
  for (const std::size_t row : members) mean += scores[row] / n;
  double squares = 0;
  for (const std::size_t row : members) squares += (scores[row] - mean) * (scores[row] - mean);
  return {mean, std::sqrt(squares / (n - 1))};
}

Advantages grpo(const EstimatorInput& input, const AdvantageOptions& options) {
  const Rows& rows = input.rows;
  const std::span<const std::string> uid = input.uid;
  TESSERA_CHECK(static_cast<std::int64_t>(uid.size()) == rows.count());
  Array scores = scores_of(rows, input.rewards);
  std::unordered_map<std::string_view, std::vector<std::size_t>> groups;
  for (std::size_t row = 0; row < uid.size(); ++row) groups[uid[row]].push_back(row);
  for (const auto& [name, members] : groups) {
    const GroupStatistics group = statistics_of(scores, members);
    for (const std::size_t row : members) {
      scores[row] -= group.mean;
      if (options.norm_adv_by_std_in_grpo) scores[row] /= group.deviation + 1e-6;
    }
  }
  Advantages result;
  result.advantages = spread(rows, scores);
  result.returns = result.advantages;
  return result;
}

constexpr std::array kOptions{EstimatorOption{.key = "norm_adv_by_std_in_grpo",
                                              .flag = &AdvantageOptions::norm_adv_by_std_in_grpo}};

}  // namespace

constinit const Estimator kGrpo{.name = "grpo", .options = kOptions, .compute = grpo};

}  // namespace tessera
