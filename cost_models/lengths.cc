#include "cost_models/lengths.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

// Where integration over positions ends: the cap, or beyond any length that is likely at all.
double horizon(const LengthSpec& lengths, double sequences) {
  if (!lengths.quantiles.empty()) return static_cast<double>(lengths.quantiles.back());
  if (lengths.cv <= 0) return std::min(lengths.mean, cap(lengths));
  const auto [mu, sigma] = log_normal(lengths);
  return std::min(cap(lengths), std::exp(mu + sigma * std::sqrt(2 * std::log(1e4 + sequences))));
}

// P(length = k widths), k up to where the cap is. Mass between two points goes to both.
std::vector<double> on_grid(const LengthSpec& lengths, double width, int cells) {
  std::vector<double> mass(static_cast<std::size_t>(cells) + 1);
  double longer = 1;
  for (std::size_t k = 0; k + 1 < mass.size(); ++k) {
    const double edge = static_cast<double>(k + 1) * width;
    const bool last = k + 2 == mass.size();
    const double next = survival(lengths, last ? edge * (1 - 1e-9) : edge);  // the cap is an atom
    mass[std::max<std::size_t>(k, 1)] += (longer - next) / 2;
    mass[k + 1] += (longer - next) / 2;
    longer = next;
  }
  mass.back() += longer;
  return mass;
}

// Sequences that enter a slot in each cell of time until `each` of them have entered.
std::vector<double> entries_of(const std::vector<double>& mass, double each) {
  std::vector<double> entered = {1.0};
  double sum = 1;
  while (true) {
    double next = 0;
    for (std::size_t k = 1; k < std::min(mass.size(), entered.size() + 1); ++k) {
      next += mass[k] * entered[entered.size() - k];
    }
    entered.push_back(std::min(next, each - sum));
    sum += next;
    if (sum >= each) return entered;
  }
}

}  // namespace

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

double decode_seconds(const LengthSpec& lengths, double prompt_tokens, double sequences,
                      const std::function<double(double alive, double context)>& step,
                      int segments) {
  const double end = horizon(lengths, sequences);
  const double width = end / segments;
  double seconds = 0;
  for (int i = 0; i < segments; ++i) {
    const double position = (i + 0.5) * width;
    const double alive = survival(lengths, position);
    const double any = 1 - std::pow(1 - alive, sequences);
    if (any <= 1e-12) break;
    seconds += width * any * step(sequences * alive / any, prompt_tokens + position);
  }
  return seconds;
}

double queue_seconds(const LengthSpec& lengths, double prompt_tokens, double sequences,
                     double slots, const std::function<double(double alive, double context)>& step,
                     int segments) {
  if (slots >= sequences) {
    return decode_seconds(lengths, prompt_tokens, sequences, step, segments);
  }
  if (lengths.cv <= 0 && lengths.quantiles.empty()) {
    const double waves = std::floor(sequences / slots), rest = sequences - waves * slots;
    const double wave = decode_seconds(lengths, prompt_tokens, slots, step, segments);
    return waves * wave +
           (rest > 0 ? decode_seconds(lengths, prompt_tokens, rest, step, segments) : 0);
  }
  constexpr double kWaves = 4;  // after which ages do not change any more
  constexpr double kFull = 0.999;
  const double end = horizon(lengths, sequences), mean = mean_length(lengths);
  const int cells = static_cast<int>(std::ceil(std::max(1.0 * segments, 8 * end / mean)));
  const double width = end / cells;
  const std::vector<double> mass = on_grid(lengths, width, cells);
  const double each = sequences / slots, skipped = std::max(0.0, each - kWaves);
  const std::vector<double> entered = entries_of(mass, each - skipped);
  std::vector<double> longer(mass.size());  // P(length > k widths)
  for (std::size_t k = mass.size() - 1; k-- > 0;) longer[k] = longer[k + 1] + mass[k + 1];
  double seconds = 0, full = 0, full_context = 0;
  for (std::size_t cell = 0; cell + 1 < entered.size() + mass.size(); ++cell) {
    double alive = 0, context = 0;  // per slot
    for (std::size_t age = 0; age < longer.size() && age <= cell; ++age) {
      if (cell - age >= entered.size()) continue;
      const double here = entered[cell - age] * longer[age];
      alive += here;
      context += here * (static_cast<double>(age) + 0.5) * width;
    }
    const double any = 1 - std::pow(1 - std::min(1.0, alive), slots);
    if (any <= 1e-12) continue;
    if (alive > kFull) {  // steps are nearly linear in the context: one for all
      full += width;
      full_context += width * context / alive;
    } else {
      seconds += width * any * step(slots * alive / any, prompt_tokens + context / alive);
    }
  }
  if (full <= 0) return seconds;
  return seconds + (full + skipped * mean) * step(slots, prompt_tokens + full_context / full);
}

double longest_length(const LengthSpec& lengths, double sequences) {
  return decode_seconds(
      lengths, 0, sequences, [](double, double) { return 1.0; }, 256);
}

}  // namespace tessera
