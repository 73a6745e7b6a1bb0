#include "cost_models/fit/length_fit.h"

#include <algorithm>
#include <cmath>

#include "cost_models/lengths.h"

namespace tessera {
namespace {

constexpr double kMostSpread = 5;
constexpr double kManyClipped = 0.01;

LengthSpec with_spread(double mean, double cv, std::int64_t limit) {
  return {.mean = unclipped_mean(mean, cv, limit), .cv = cv, .max = limit};
}

// What grows with the spread less what was measured of it.
double excess(const LengthFigures& figures, double cv, std::int64_t limit) {
  const LengthSpec lengths = with_spread(figures.mean, cv, limit);
  const double clipped = figures.clipped.value_or(0);
  if (clipped > kManyClipped) {
    return survival(lengths, static_cast<double>(limit) - 0.5) - clipped;
  }
  const double longer = 1 - std::pow(0.5, 1 / std::max(1.0, figures.sequences));
  const double most =
      std::min(figures.most.value_or(figures.mean), static_cast<double>(limit) - 0.5);
  return survival(lengths, most) - longer;
}

// The largest spread, at most this one, whose log-normal has its own mean within the limit, as a
// workload must: where the limit ended most responses, that of the figures has not.
double spread_within(double cv, double mean, std::int64_t limit) {
  const auto within = [&](double spread) {
    return unclipped_mean(mean, spread, limit) <= static_cast<double>(limit);
  };
  if (within(cv)) return cv;
  double low = 0, high = cv;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (within(middle) ? low : high) = middle;
  }
  return low;
}

bool are_equal(const LengthFigures& figures) {
  return figures.least && figures.most && *figures.most - *figures.least < 1;
}

}  // namespace

LengthSpec fit_lengths(const LengthFigures& figures, const LengthSpec& planned) {
  const std::int64_t limit = planned.max;
  const double mean = std::min(figures.mean, static_cast<double>(limit));
  const double clipped = figures.clipped.value_or(0);
  if (are_equal(figures) || mean >= static_cast<double>(limit) || clipped >= 1) {
    return {.mean = mean, .cv = 0, .max = limit};
  }
  if (!figures.most && clipped <= kManyClipped) {
    return planned.cv > 0 ? with_spread(mean, spread_within(planned.cv, mean, limit), limit)
                          : LengthSpec{.mean = mean, .cv = 0, .max = limit};
  }
  double low = 0.01, high = kMostSpread;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = std::sqrt(low * high);
    (excess(figures, middle, limit) < 0 ? low : high) = middle;
  }
  return with_spread(mean, spread_within(std::sqrt(low * high), mean, limit), limit);
}

}  // namespace tessera
