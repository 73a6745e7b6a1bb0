#include "executor/rl/advantage.h"

#include <cmath>
#include <unordered_map>

#include "cost_models/documents/problem.h"

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

}  // namespace

std::string_view name_of(AdvantageEstimator estimator) {
  return estimator == AdvantageEstimator::gae ? "gae" : "grpo";
}

Advantages gae(const Rows& rows, View rewards, View values, double gamma, double lam) {
  Advantages result{Array(rewards.size(), 0.0), Array(rewards.size(), 0.0)};
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    double next_value = 0, next_advantage = 0;
    for (std::int64_t i = rows.begin[row + 1] - 1; i >= rows.begin[row]; --i) {
      if (!rows.valid(i)) continue;
      const auto at = static_cast<std::size_t>(i);
      const double delta = rewards[at] + gamma * next_value - values[at];
      next_advantage = delta + gamma * lam * next_advantage;
      next_value = values[at];
      result.advantages[at] = next_advantage;
      result.returns[at] = next_advantage + values[at];
    }
  }
  result.advantages = masked_whiten(rows, result.advantages);
  return result;
}

Advantages grpo(const Rows& rows, View rewards, std::span<const std::string> uid,
                bool normalize_by_std) {
  TESSERA_CHECK(static_cast<std::int64_t>(uid.size()) == rows.count());
  Array scores = scores_of(rows, rewards);
  std::unordered_map<std::string_view, std::vector<std::size_t>> groups;
  for (std::size_t row = 0; row < uid.size(); ++row) groups[uid[row]].push_back(row);
  for (const auto& [name, members] : groups) {
    const GroupStatistics group = statistics_of(scores, members);
    for (const std::size_t row : members) {
      scores[row] -= group.mean;
      if (normalize_by_std) scores[row] /= group.deviation + 1e-6;
    }
  }
  Advantages result;
  result.advantages = spread(rows, scores);
  result.returns = result.advantages;
  return result;
}

}  // namespace tessera
