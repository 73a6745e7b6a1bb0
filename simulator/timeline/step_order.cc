#include "simulator/timeline/step_order.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace tessera {

std::vector<LoggedStep> in_order(const std::vector<StepNumbers>& lines) {
  std::map<std::int64_t, LoggedStep> last;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool repeats =
        i > 0 && lines[i].step == lines[i - 1].step && lines[i].data == lines[i - 1].data;
    if (repeats) continue;
    const auto since = lines[i].data.find(kStepsSinceStart);
    const bool says_so = since != lines[i].data.end() && since->second == 1;
    last[lines[i].step] = {lines[i], i > 0 && (says_so || lines[i].step <= lines[i - 1].step)};
  }
  std::vector<LoggedStep> steps;
  for (auto& [number, step] : last) steps.push_back(std::move(step));
  return steps;
}

}  // namespace tessera
