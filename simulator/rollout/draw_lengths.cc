#include "simulator/rollout/draw_lengths.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// In (0, 1), never an end: the upper 52 bits and a half.
double uniform_of(std::uint64_t seed, std::int64_t step, std::int64_t prompt, std::int64_t sample) {
  std::uint64_t bits = mixed(seed);
  for (const std::int64_t part : {step, prompt, sample}) {
    bits = mixed(bits ^ static_cast<std::uint64_t>(part));
  }
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52;
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

std::int64_t draw_length(const LengthSpec& lengths, std::uint64_t seed, std::int64_t step,
                         std::int64_t prompt, std::int64_t sample) {
  if (!lengths.quantiles.empty()) {
    const auto count = static_cast<double>(lengths.quantiles.size());
    return lengths
        .quantiles[static_cast<std::size_t>(uniform_of(seed, step, prompt, sample) * count)];
  }
  double length = lengths.mean;
  if (lengths.cv > 0) {
    const double variance = std::log1p(lengths.cv * lengths.cv);
    const double normal = normal_quantile(uniform_of(seed, step, prompt, sample));
    length = std::exp(std::log(lengths.mean) - variance / 2 + std::sqrt(variance) * normal);
  }
  if (lengths.max > 0) length = std::min(length, static_cast<double>(lengths.max));
  return std::max<std::int64_t>(1, std::llround(length));
}

std::vector<std::int64_t> draw_lengths(const Workload& workload, std::uint64_t seed,
                                       std::int64_t step) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(static_cast<std::size_t>(workload.sequences()));
  for (std::int64_t prompt = 0; prompt < workload.prompts_per_step; ++prompt) {
    for (std::int64_t sample = 0; sample < workload.samples_per_prompt; ++sample) {
      lengths.push_back(draw_length(workload.response_tokens, seed, step, prompt, sample));
    }
  }
  return lengths;
}

}  // namespace tessera
