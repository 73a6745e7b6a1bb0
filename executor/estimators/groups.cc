#include "executor/estimators/groups.h"

#include <cmath>
#include <string_view>
#include <unordered_map>

#include "cost_models/documents/check.h"

namespace tessera {

Array scores_of(const Rows& rows, View rewards) {
  Array scores(static_cast<std::size_t>(rows.count()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      scores[row] += rewards[static_cast<std::size_t>(i)];
    }
  }
  return scores;
}

std::vector<Group> groups_of(const Rows& rows, std::span<const std::string> uid) {
  TESSERA_CHECK(static_cast<std::int64_t>(uid.size()) == rows.count());
  std::unordered_map<std::string_view, std::size_t> known;
  std::vector<Group> groups;
  for (std::size_t row = 0; row < uid.size(); ++row) {
    const auto [at, is_new] = known.try_emplace(uid[row], groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(row);
  }
  return groups;
}

double group_mean(View scores, const Group& group) {
  if (group.size() == 1) return 0;
  double sum = 0;
  for (const std::size_t row : group) sum += scores[row];
  return sum / static_cast<double>(group.size());
}

double group_deviation(View scores, const Group& group) {
  if (group.size() == 1) return 1;
  const double mean = group_mean(scores, group);
  double squares = 0;
  for (const std::size_t row : group) squares += (scores[row] - mean) * (scores[row] - mean);
  return std::sqrt(squares / static_cast<double>(group.size() - 1));
}

Array relative_scores(View scores, std::span<const Group> groups, bool divide) {
  Array relative(scores.begin(), scores.end());
  for (const Group& group : groups) {
    const double mean = group_mean(scores, group);
    const double divisor = divide ? group_deviation(scores, group) + 1e-6 : 1;
    for (const std::size_t row : group) relative[row] = (scores[row] - mean) / divisor;
  }
  return relative;
}

Array spread(const Rows& rows, View per_row) {
  Array values(static_cast<std::size_t>(rows.entries()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (rows.valid(i)) values[static_cast<std::size_t>(i)] = per_row[row];
    }
  }
  return values;
}

Advantages outcome(const Rows& rows, View per_row) {
  Advantages result;
  result.advantages = spread(rows, per_row);
  result.returns = result.advantages;
  return result;
}

Array rewards_to_go(const Rows& rows, View rewards) {
  Array returns(rewards.size(), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    double sum = 0;
    for (std::int64_t i = rows.begin[row + 1] - 1; i >= rows.begin[row]; --i) {
      if (!rows.valid(i)) continue;
      sum += rewards[static_cast<std::size_t>(i)];
      returns[static_cast<std::size_t>(i)] = sum;
    }
  }
  return returns;
}

void zero_invalid(const Rows& rows, Array& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!rows.valid(static_cast<std::int64_t>(i))) values[i] = 0;
  }
}

}  // namespace tessera
