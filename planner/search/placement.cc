// Placements and objectives: names, numbers, order.
#include <algorithm>
#include <array>
#include <numeric>

#include "planner/search/exact.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kObjectives = {"step_s", "tokens_per_s_per_gpu", "cost",
                                                         "gpus"};

}  // namespace

std::string describe(const Placement& placement) {
  if (placement.size() == 1) return "colocated";
  std::string text;
  for (const auto& block : placement) {
    std::string roles;
    for (const Role role : block) {
      if (role == Role::rollout && block.size() > 1) continue;
      roles += (roles.empty() ? "" : "+") + std::string(name_of(role));
    }
    text += (text.empty() ? "" : " | ") + roles;
  }
  return text;
}

std::string_view name_of(Objective objective) {
  return kObjectives[static_cast<std::size_t>(objective)];
}

std::optional<Objective> objective_from(std::string_view name) {
  const auto found = std::find(kObjectives.begin(), kObjectives.end(), name);
  if (found == kObjectives.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectives.begin());
}

std::vector<std::string> objective_names() { return {kObjectives.begin(), kObjectives.end()}; }

int Solution::gpus() const { return std::accumulate(sizes.begin(), sizes.end(), 0); }

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

double value_of(Objective objective, const Solution& solution) {
  if (objective == Objective::cost) return solution.step_s * solution.billed_gpus;
  return value_of(objective, solution.step_s, solution.gpus());
}

std::vector<Placement> all_placements(const std::vector<Role>& roles, bool disaggregated) {
  std::vector<Placement> placements{{}};
  for (const Role role : roles) {
    std::vector<Placement> extended;
    for (const Placement& placement : placements) {
      if (role == Role::rollout) {
        extended.push_back(placement);
        extended.back().front().push_back(role);
        continue;
      }
      for (std::size_t block = 0; block <= placement.size(); ++block) {
        Placement next = placement;
        if (block == placement.size()) next.emplace_back();
        next[block].push_back(role);
        extended.push_back(std::move(next));
      }
    }
    placements = std::move(extended);
  }
  const bool generates = std::find(roles.begin(), roles.end(), Role::rollout) != roles.end();
  if (!disaggregated || !generates) return placements;
  const std::size_t together = placements.size();
  for (std::size_t i = 0; i < together; ++i) {
    Placement apart = placements[i];
    std::erase(apart.front(), Role::rollout);
    apart.push_back({Role::rollout});
    placements.push_back(std::move(apart));
  }
  return placements;
}

}  // namespace tessera
