// What the start of a run spends its time on, from the command to the first step.
//
// Seconds. One thread of a rank; each rank has its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

struct StartStages {
  std::vector<std::pair<std::string, double>>
      seconds;         // of each stage, in order of their first end
  double until_s = 0;  // since the command: end of the last stage
};

/// The time since the last stage ended, or since the command, was spent on `stage`, which may come
/// again: its parts add up.
void end_stage(StartStages& stages, std::string_view stage);

/// `weights 3.2, optimizer 0.4, ...`: stages of at least a tenth of a second, the longest first.
std::string to_string(const StartStages& stages);

}  // namespace tessera
