#include "simulator/timeline/measured_mean.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr double kSingleStep = 0.05;       // deviation of a mean over one step
constexpr double kLeastDeviation = 0.003;  // of a mean: clocks of hosts, rounding in logs

}  // namespace

MeasuredMean mean_of(const std::vector<double>& values) {
  MeasuredMean result;
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.spread = std::sqrt(squares / (count - 1));
  const double least = (values.size() > 1 ? kLeastDeviation : kSingleStep) * result.mean;
  result.deviation = std::max(least, result.spread / std::sqrt(count));
  return result;
}

}  // namespace tessera
