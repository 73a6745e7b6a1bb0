#include "planner/search/view_fronts.h"

#include <utility>

#include "planner/search/exact.h"
#include "planner/space/layout_space.h"

namespace tessera {

ViewFronts::ViewFronts(const SearchProblem& problem, FrontStore::State& store) : whole_(problem) {
  fronts_.push_back(std::make_unique<Fronts>(problem, store));
  for (std::size_t view = 1; view < problem.views.size(); ++view) {
    auto seen = std::make_unique<SearchProblem>(problem);
    seen->memory_limit = problem.views[view].memory_limit;
    seen->priced_limit = problem.views[view].priced_limit;
    seen->fixed_seconds = problem.views[view].fixed_seconds;
    const auto number = static_cast<int>(view);
    for (RoleSettings& settings : seen->settings) settings.view = number;
    seen->spaces = [all = problem.spaces, number](Role role, int gpus) {
      std::vector<LayoutSpace> spaces = all(role, gpus);
      for (LayoutSpace& space : spaces) space.layout.view = number;
      return spaces;
    };
    fronts_.push_back(std::make_unique<Fronts>(*seen, store));
    others_.push_back(std::move(seen));
  }
}

std::int64_t ViewFronts::evaluated() const {
  std::int64_t sum = 0;
  for (const auto& fronts : fronts_) sum += fronts->evaluated();
  return sum;
}

}  // namespace tessera
