#include "cost_models/lengths.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct LogNormal {
  double mu = 0, sigma = 0;
};

LogNormal log_normal(const LengthSpec& lengths) {
  const double variance = std::log1p(lengths.cv * lengths.cv);
  return {std::log(lengths.mean) - variance / 2, std::sqrt(variance)};
}

double cap(const LengthSpec& lengths) {
  return lengths.max > 0 ? static_cast<double>(lengths.max) : HUGE_VAL;
}

// E[min(X, max)^power] of the log-normal X.
double clipped_moment(const LengthSpec& lengths, int power) {
  if (!lengths.quantiles.empty()) {  // moments of the whole table
    const double spread = power == 2 ? 1 + lengths.cv * lengths.cv : 1;
    return std::pow(lengths.mean, power) * spread;
  }
  const double limit = cap(lengths);
  if (lengths.cv <= 0) return std::pow(std::min(lengths.mean, limit), power);
  const auto [mu, sigma] = log_normal(lengths);
  const double whole = std::exp(power * mu + power * power * sigma * sigma / 2);
  if (std::isinf(limit)) return whole;
  const double edge = (std::log(limit) - mu) / sigma;
  return whole * normal_cdf(edge - power * sigma) + std::pow(limit, power) * (1 - normal_cdf(edge));
}

double polynomial(const auto& coefficients, double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

// Acklam's coefficients: the centre's numerator and denominator, then the tails'.
constexpr std::array kCentreUp = {-3.969683028665376e+01, 2.209460984245205e+02,
                                  -2.759285104469687e+02, 1.383577518672690e+02,
                                  -3.066479806614716e+01, 2.506628277459239e+00};
constexpr std::array kCentreDown = {-5.447609879822406e+01, 1.615858368580409e+02,
                                    -1.556989798598866e+02, 6.680131188771972e+01,
                                    -1.328068155288572e+01, 1.0};
constexpr std::array kTailUp = {-7.784894002430293e-03, -3.223964580411365e-01,
                                -2.400758277161838e+00, -2.549732539343734e+00,
                                4.374664141464968e+00,  2.938163982698783e+00};
constexpr std::array kTailDown = {7.784695709041462e-03, 3.224671290700398e-01,
                                  2.445134137142996e+00, 3.754408661907416e+00, 1.0};

double lower_tail(double p) {
  const double q = std::sqrt(-2 * std::log(p));
  return polynomial(kTailUp, q) / polynomial(kTailDown, q);
}

}  // namespace

double normal_quantile(double p) {
  TESSERA_CHECK(p > 0 && p < 1);
  constexpr double kTail = 0.02425;
  if (p < kTail) return lower_tail(p);
  if (p > 1 - kTail) return -lower_tail(1 - p);
  const double q = p - 0.5, r = q * q;
  return q * polynomial(kCentreUp, r) / polynomial(kCentreDown, r);
}

std::int64_t length_at(const LengthSpec& lengths, double share) {
  if (!lengths.quantiles.empty()) {
    const auto count = static_cast<double>(lengths.quantiles.size());
    return lengths.quantiles[static_cast<std::size_t>(share * count)];
  }
  double length = lengths.mean;
  if (lengths.cv > 0) {
    const double variance = std::log1p(lengths.cv * lengths.cv);
    length = std::exp(std::log(lengths.mean) - variance / 2 +
                      std::sqrt(variance) * normal_quantile(share));
  }
  if (lengths.max > 0) length = std::min(length, static_cast<double>(lengths.max));
  return std::max<std::int64_t>(1, std::llround(length));
}

double survival(const LengthSpec& lengths, double tokens) {
  if (!lengths.quantiles.empty()) {
    const auto& sorted = lengths.quantiles;
    const auto longer = std::upper_bound(
        sorted.begin(), sorted.end(), tokens,
        [](double value, std::int64_t length) { return value < static_cast<double>(length); });
    return static_cast<double>(sorted.end() - longer) / static_cast<double>(sorted.size());
  }
  if (tokens >= cap(lengths)) return 0;
  if (lengths.cv <= 0) return tokens < lengths.mean ? 1 : 0;
  if (tokens <= 0) return 1;
  const auto [mu, sigma] = log_normal(lengths);
  return 1 - normal_cdf((std::log(tokens) - mu) / sigma);
}

double mean_length(const LengthSpec& lengths) { return clipped_moment(lengths, 1); }
double mean_square_length(const LengthSpec& lengths) { return clipped_moment(lengths, 2); }

double unclipped_mean(double mean, double cv, std::int64_t max) {
  if (cv <= 0 || static_cast<double>(max) <= mean) return mean;
  double low = mean, high = mean;
  const auto clipped = [&](double whole) { return mean_length({whole, cv, max}); };
  constexpr double kMost = 1e6;  // nearly all at the cap
  while (clipped(high) < mean && high < kMost * mean) high *= 2;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (clipped(middle) < mean ? low : high) = middle;
  }
  return high;
}

double length_horizon(const LengthSpec& lengths, double sequences) {
  if (!lengths.quantiles.empty()) return static_cast<double>(lengths.quantiles.back());
  if (lengths.cv <= 0) return std::min(lengths.mean, cap(lengths));
  const auto [mu, sigma] = log_normal(lengths);
  return std::min(cap(lengths), std::exp(mu + sigma * std::sqrt(2 * std::log(1e4 + sequences))));
}

}  // namespace tessera
