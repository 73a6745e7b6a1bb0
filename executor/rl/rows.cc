#include "executor/rl/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr double kEpsilon = 1e-8;  // of the variance

/// verl divides by n + 1e-8, which its float32 count rounds to n.
double over_count(double sum, std::int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0; }

std::vector<std::int64_t> all_of(std::span<const Sequence> sequences) {
  std::vector<std::int64_t> which(sequences.size());
  std::iota(which.begin(), which.end(), std::int64_t{0});
  return which;
}

/// 1 for each valid token of a response.
void append_mask(const Sequence& s, std::vector<std::uint8_t>& mask) {
  TESSERA_CHECK(s.response_mask.empty() || s.response_mask.size() == s.response.size());
  TESSERA_CHECK(s.rejected.empty() || s.rejected.size() == s.response.size());
  for (std::size_t i = 0; i < s.response.size(); ++i) {
    const bool hole = !s.response_mask.empty() && s.response_mask[i] == 0;
    const bool rejected = !s.rejected.empty() && s.rejected[i] != 0;
    mask.push_back(hole || rejected ? 0 : 1);
  }
}

}  // namespace

std::int64_t Rows::width() const {
  if (padded_width > 0) return padded_width;
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < count(); ++row) {
    longest = std::max(longest, begin[row + 1] - begin[row]);
  }
  return longest;
}

std::int64_t Rows::valid_in(std::int64_t row) const {
  std::int64_t n = 0;
  for (std::int64_t i = begin[row]; i < begin[row + 1]; ++i) n += valid(i) ? 1 : 0;
  return n;
}

std::int64_t Rows::valid_entries() const {
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < entries(); ++i) n += valid(i) ? 1 : 0;
  return n;
}

std::int64_t Rows::nonempty_rows() const {
  std::int64_t n = 0;
  for (std::int64_t row = 0; row < count(); ++row) n += valid_in(row) > 0 ? 1 : 0;
  return n;
}

Rows rows_of(std::span<const Sequence> sequences, std::int64_t padded_width) {
  return rows_of(sequences, all_of(sequences), padded_width);
}

Rows rows_of(std::span<const Sequence> sequences, std::span<const std::int64_t> which,
             std::int64_t padded_width) {
  Rows rows{.padded_width = padded_width};
  const bool masked = std::any_of(which.begin(), which.end(), [&](std::int64_t i) {
    const Sequence& s = sequences[static_cast<std::size_t>(i)];
    return !s.response_mask.empty() || !s.rejected.empty();
  });
  for (const std::int64_t i : which) {
    const Sequence& s = sequences[static_cast<std::size_t>(i)];
    rows.begin.push_back(rows.begin.back() + static_cast<std::int64_t>(s.response.size()));
    if (masked) append_mask(s, rows.mask);
  }
  return rows;
}

std::int64_t tokens_before_rejection(std::span<const Sequence> sequences) {
  std::int64_t tokens = 0;
  for (const Sequence& s : sequences) {
    tokens += static_cast<std::int64_t>(
        s.response_mask.empty()
            ? s.response.size()
            : s.response.size() - static_cast<std::size_t>(std::count(s.response_mask.begin(),
                                                                      s.response_mask.end(), 0)));
  }
  return tokens;
}

Array flat(std::span<const Sequence> sequences, std::vector<float> Sequence::*field) {
  return flat(sequences, all_of(sequences), field);
}

Array flat(std::span<const Sequence> sequences, std::span<const std::int64_t> which,
           std::vector<float> Sequence::*field) {
  Array values;
  for (const std::int64_t i : which) {
    const Sequence& s = sequences[static_cast<std::size_t>(i)];
    TESSERA_CHECK((s.*field).size() == s.response.size());
    values.insert(values.end(), (s.*field).begin(), (s.*field).end());
  }
  return values;
}

void store(View values, std::span<Sequence> sequences, std::vector<float> Sequence::*field) {
  store(values, sequences, all_of(sequences), field);
}

void store(View values, std::span<Sequence> sequences, std::span<const std::int64_t> which,
           std::vector<float> Sequence::*field) {
  std::size_t at = 0;
  for (const std::int64_t i : which) {
    Sequence& s = sequences[static_cast<std::size_t>(i)];
    TESSERA_CHECK(at + s.response.size() <= values.size());
    const View part = values.subspan(at, s.response.size());
    (s.*field).assign(part.begin(), part.end());
    at += s.response.size();
  }
  TESSERA_CHECK(at == values.size());
}

double masked_sum(const Rows& rows, View values) {
  double sum = 0;
  for (std::int64_t i = 0; i < rows.entries(); ++i) {
    if (rows.valid(i)) sum += values[static_cast<std::size_t>(i)];
  }
  return sum;
}

Array masked_sum_rows(const Rows& rows, View values) {
  Array sums(static_cast<std::size_t>(rows.count()), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (rows.valid(i)) sums[row] += values[static_cast<std::size_t>(i)];
    }
  }
  return sums;
}

double masked_mean(const Rows& rows, View values) {
  return over_count(masked_sum(rows, values), rows.valid_entries());
}

Array masked_mean_rows(const Rows& rows, View values) {
  Array means = masked_sum_rows(rows, values);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    means[row] = over_count(means[row], rows.valid_in(row));
  }
  return means;
}

double masked_variance(const Rows& rows, View values, bool unbiased) {
  const double mean = masked_mean(rows, values);
  Array squares(values.begin(), values.end());
  for (double& x : squares) x = (x - mean) * (x - mean);
  const double variance = masked_mean(rows, squares);
  if (!unbiased) return variance;
  const auto n = static_cast<double>(rows.valid_entries());
  if (n <= 1) {
    throw Error(ExitCode::check_failed,
                "whitening needs at least two valid tokens in the batch, found " +
                    std::to_string(rows.valid_entries()));
  }
  return variance * n / (n - 1);
}

Array masked_whiten(const Rows& rows, View values, bool shift_mean) {
  const double mean = masked_mean(rows, values);
  const double scale = 1 / std::sqrt(masked_variance(rows, values) + kEpsilon);
  Array whitened(values.begin(), values.end());
  for (double& x : whitened) x = (x - mean) * scale + (shift_mean ? 0 : mean);
  return whitened;
}

}  // namespace tessera
