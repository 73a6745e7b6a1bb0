#include "planner/request/objective.h"

#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kObjectives =
    enum_names<Objective>({{Objective::step_time, "step_s"},
                           {Objective::tokens_per_gpu, "tokens_per_s_per_gpu"},
                           {Objective::cost, "cost"},
                           {Objective::fewest_gpus, "gpus"}});

}  // namespace

std::string_view name_of(Objective objective) { return kObjectives[objective]; }
std::optional<Objective> objective_from(std::string_view name) { return kObjectives.find(name); }
std::vector<std::string> objective_names() { return kObjectives.names(); }

double value_of(Objective objective, Seconds step, int gpus) {
  switch (objective) {
    case Objective::step_time:
      return step.value;
    case Objective::tokens_per_gpu:
    case Objective::cost:
      return step.value * gpus;
    case Objective::fewest_gpus:
      break;
  }
  return gpus + step.value / (1 + step.value);
}

}  // namespace tessera
