#include "planner/interop/config/import_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cost_models/documents/problem.h"
#include "cost_models/lengths.h"

namespace tessera {
namespace {

constexpr double kSpread = 0.5;      // as configs/workloads and the rows of a sweep assume it
constexpr double kMostSpread = 100;  // that a workload may state

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void refuse(const char* option, const std::string& found, std::string expected,
            Problems& problems) {
  problems.push_back({option, "", found, std::move(expected), ""});
}

// NaN compares false.
bool is_mean(const char* option, double mean, std::int64_t max, Problems& problems) {
  if (mean > 0 && mean <= static_cast<double>(max)) return true;
  refuse(option, number_text(mean),
         "a number above 0, at most the " + std::to_string(max) + " tokens of the longest",
         problems);
  return false;
}

// The widest log-normal with a mean of at most `max` whose lengths, cut there, have this mean, to
// four digits behind the point. A plan states no mean above its limit.
double widest_spread(double mean, std::int64_t max) {
  double low = 0, high = kMostSpread;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (mean_length({static_cast<double>(max), middle, max}) < mean ? high : low) = middle;
  }
  return std::floor(low * 1e4) / 1e4;
}

}  // namespace

LengthSpec response_lengths(const ImportOptions& options, std::int64_t max,
                            std::vector<std::string>& notes, Problems& problems) {
  const auto most = static_cast<double>(max);
  const LengthSpec longest{most, 0, max};
  if (!options.response_mean) {
    if (options.response_cv) {
      refuse("--response-cv", "no --response-mean", "both: the spread is that of a mean", problems);
    }
    notes.push_back("every response is counted as long as the longest, " + std::to_string(max) +
                    " tokens; --response-mean says otherwise.");
    return longest;
  }
  const double mean = *options.response_mean;
  if (!is_mean("--response-mean", mean, max, problems)) return longest;
  const double widest = widest_spread(mean, max);
  double cv = options.response_cv.value_or(std::min(kSpread, widest));
  if (!(cv >= 0 && cv <= widest)) {  // NaN compares false
    refuse("--response-cv", number_text(cv),
           "a number from 0 to " + number_text(widest) + " where a mean of " + number_text(mean) +
               " tokens ends at " + std::to_string(max),
           problems);
    return longest;
  }
  if (mean == most) return longest;
  if (!options.response_cv) {
    notes.push_back("the standard deviation of responses is assumed to be " + number_text(cv) +
                    " of their mean before the limit cuts them; --response-cv says otherwise.");
  }
  return {std::min(most, unclipped_mean(mean, cv, max)), cv, max};
}

std::int64_t mean_prompt(const ImportOptions& options, std::int64_t max, Problems& problems) {
  if (!options.prompt_mean) return max;
  if (!is_mean("--prompt-mean", *options.prompt_mean, max, problems)) return max;
  return std::max<std::int64_t>(1, std::llround(*options.prompt_mean));
}

}  // namespace tessera
