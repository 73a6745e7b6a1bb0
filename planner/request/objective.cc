#include "planner/request/objective.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kObjectives = {"step_s", "tokens_per_s_per_gpu", "cost",
                                                         "gpus"};

}  // namespace

std::string_view name_of(Objective objective) {
  return kObjectives[static_cast<std::size_t>(objective)];
}

std::optional<Objective> objective_from(std::string_view name) {
  const auto found = std::find(kObjectives.begin(), kObjectives.end(), name);
  if (found == kObjectives.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectives.begin());
}

std::vector<std::string> objective_names() { return {kObjectives.begin(), kObjectives.end()}; }

double value_of(Objective objective, double step_s, int gpus) {
  switch (objective) {
    case Objective::step_time:
      return step_s;
    case Objective::tokens_per_gpu:
    case Objective::cost:
      return step_s * gpus;
    case Objective::fewest_gpus:
      break;
  }
  return gpus + step_s / (1 + step_s);
}

}  // namespace tessera
