#include "executor/launch/start_stages.h"

#include <algorithm>
#include <cstdio>

#include "executor/launch/launch_age.h"

namespace tessera {

void end_stage(StartStages& stages, std::string_view stage) {
  const double now_s = seconds_since_launch();
  const auto found = std::find_if(stages.seconds.begin(), stages.seconds.end(),
                                  [&](const auto& one) { return one.first == stage; });
  const double spent_s = std::max(0.0, now_s - stages.until_s);
  if (found == stages.seconds.end()) {
    stages.seconds.emplace_back(stage, spent_s);
  } else {
    found->second += spent_s;
  }
  stages.until_s = now_s;
}

std::string to_string(const StartStages& stages) {
  constexpr double kShown = 0.1;
  auto sorted = stages.seconds;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [stage, spent_s] : sorted) {
    if (spent_s < kShown) break;
    char seconds[24];
    std::snprintf(seconds, sizeof seconds, " %.1f", spent_s);
    text += (text.empty() ? "" : ", ") + stage + seconds;
  }
  return text;
}

}  // namespace tessera
