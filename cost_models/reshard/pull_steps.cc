#include "cost_models/reshard/pull_steps.h"

#include <algorithm>
#include <functional>
#include <set>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

using Matrix = std::vector<std::vector<std::int64_t>>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct Sums {
  std::vector<std::int64_t> row, column;
  std::int64_t most = 0;
};

Sums sums_of(const Matrix& matrix) {
  Sums sums{std::vector<std::int64_t>(matrix.size()), std::vector<std::int64_t>(matrix.size())};
  for (std::size_t s = 0; s < matrix.size(); ++s) {
    for (std::size_t d = 0; d < matrix.size(); ++d) {
      sums.row[s] += matrix[s][d];
      sums.column[d] += matrix[s][d];
    }
  }
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    sums.most = std::max({sums.most, sums.row[i], sums.column[i]});
  }
  return sums;
}

/// Idle amounts that make every row and column sum equal.
Matrix idle_of(const Matrix& matrix) {
  const Sums sums = sums_of(matrix);
  Matrix idle(matrix.size(), std::vector<std::int64_t>(matrix.size()));
  std::vector<std::int64_t> row(matrix.size()), column(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    row[i] = sums.most - sums.row[i];
    column[i] = sums.most - sums.column[i];
  }
  for (std::size_t s = 0, d = 0; s < matrix.size() && d < matrix.size();) {
    const std::int64_t amount = std::min(row[s], column[d]);
    idle[s][d] += amount;
    row[s] -= amount;
    column[d] -= amount;
    row[s] == 0 ? ++s : ++d;
  }
  return idle;
}

/// A perfect matching over entries of at least `least`: the source of every reader. Empty where
/// there is none.
std::vector<int> matching(const Matrix& weight, std::int64_t least) {
  const int n = static_cast<int>(weight.size());
  std::vector<int> source(at(n), -1);
  for (int s = 0; s < n; ++s) {
    std::vector<char> seen(at(n));
    const std::function<bool(int)> place = [&](int from) {
      for (int k = 0; k < n; ++k) {
        const int d = (from + n - 1 - k) % n;  // a ring first: everybody reads from the next rank
        if (weight[at(from)][at(d)] < least || seen[at(d)] != 0) continue;
        seen[at(d)] = 1;
        if (source[at(d)] >= 0 && !place(source[at(d)])) continue;
        source[at(d)] = from;
        return true;
      }
      return false;
    };
    if (!place(s)) return {};
  }
  return source;
}

/// The matching whose least entry is greatest: few steps. All sums equal and positive, so that
/// there is one (Birkhoff).
std::vector<int> widest_matching(const Matrix& weight) {
  std::set<std::int64_t> values;
  for (const auto& row : weight) values.insert(row.begin(), row.end());
  values.erase(0);
  const std::vector<std::int64_t> levels(values.begin(), values.end());
  std::size_t good = 0, bad = levels.size();
  std::vector<int> best = matching(weight, levels.at(0));
  TESSERA_CHECK(!best.empty());
  while (bad - good > 1) {
    const std::size_t middle = (good + bad) / 2;
    std::vector<int> found = matching(weight, levels[middle]);
    if (found.empty()) {
      bad = middle;
    } else {
      good = middle;
      best = std::move(found);
    }
  }
  return best;
}

}  // namespace

std::int64_t busiest_end(const PullTraffic& traffic) { return sums_of(traffic).most; }

std::int64_t PullStep::longest() const {
  return moved.empty() ? 0 : *std::max_element(moved.begin(), moved.end());
}

std::vector<PullStep> matched_steps(const PullTraffic& traffic, std::int64_t quantum) {
  Matrix left = traffic;  // bytes
  Matrix work = traffic;  // quanta
  for (auto& row : work) {
    for (std::int64_t& amount : row) amount = (amount + quantum - 1) / quantum;
  }
  Matrix idle = idle_of(work);
  std::vector<PullStep> steps;
  for (std::int64_t open = sums_of(work).most; open > 0;) {
    Matrix weight = work;
    for (std::size_t s = 0; s < weight.size(); ++s) {
      for (std::size_t d = 0; d < weight.size(); ++d) weight[s][d] += idle[s][d];
    }
    const std::vector<int> source = widest_matching(weight);
    std::int64_t length = open;
    for (std::size_t d = 0; d < source.size(); ++d) {
      length = std::min(length, weight[at(source[d])][d]);
    }
    PullStep step{std::vector<int>(source.size(), -1), std::vector<std::int64_t>(source.size())};
    for (std::size_t d = 0; d < source.size(); ++d) {
      const std::size_t s = at(source[d]);
      const std::int64_t moved = std::min(length, work[s][d]);
      work[s][d] -= moved;
      idle[s][d] -= length - moved;
      step.moved[d] = std::min(moved * quantum, left[s][d]);
      left[s][d] -= step.moved[d];
      if (step.moved[d] > 0) step.source[d] = source[d];
    }
    open -= length;
    if (step.longest() > 0) steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace tessera
