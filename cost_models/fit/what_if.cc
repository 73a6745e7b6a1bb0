#include "cost_models/fit/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/learned_constants.h"

namespace tessera {
namespace {

std::optional<double> number_from(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

void set_constants(Calibration& calibration, std::span<const std::string> words,
                   Problems& problems) {
  const std::vector<Adjustable> known = adjustables(calibration);
  std::vector<std::string> names;
  for (const Adjustable& each : known) names.push_back(each.name);
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Adjustable& each) { return each.name == name; });
    if (equals == word.npos || found == known.end()) {
      problems.push_back({"--set", name, "'" + word + "'",
                          "NAME=VALUE of a constant above 0 (tessera learn lists them)",
                          did_you_mean(name, names)});
      continue;
    }
    const auto value = number_from(word.substr(equals + 1));
    if (!value || !(*value > 0)) {
      problems.push_back(
          {"--set", name, "'" + word.substr(equals + 1) + "'", "a number above 0", ""});
      continue;
    }
    found->scale(calibration, *value / found->value(calibration));
  }
}

}  // namespace tessera
