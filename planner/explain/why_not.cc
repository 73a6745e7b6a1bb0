#include "planner/explain/why_not.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/infeasible_json.h"
#include "planner/explain/planner.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  const bool small = std::abs(seconds) < 1;
  std::snprintf(text.data(), text.size(), small ? "%+.2f ms" : "%+.3f s",
                small ? seconds * 1e3 : seconds);
  return text.data();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string role_text(const Plan& plan, const RolePlan& role) {
  return describe_layout(plan, role) + " on " + std::to_string(role.ranks.size());
}

// Roles whose layout differs between the chosen plan and the other.
std::string changes_text(const Plan& chosen, const Plan& other) {
  std::string text;
  for (const RolePlan& role : other.roles) {
    const RolePlan* before = chosen.find(role.role);
    if (before == nullptr || role_text(chosen, *before) == role_text(other, role)) continue;
    text += "  " + std::string(name_of(role.role)) + ": " + role_text(chosen, *before) + " -> " +
            role_text(other, role) + "\n";
  }
  return text;
}

// "  of it          communication +7.300 s, computation -182.00 ms".
std::string causes_text(const WhyNot& answer) {
  std::string text;
  for (const auto& [part, extra] : answer.causes) {
    text += (text.empty() ? "  of it          " : ", ") + std::string(name_of(part)) + " " +
            seconds_text(extra);
  }
  return text.empty() ? text : text + "\n";
}

// How a choice can be better than a plan, which its search would have taken.
std::string why_better_is_possible(const Plan& plan) {
  return "the plan " + (certified(plan) == Certified::yes
                            ? "was made with other constants or settings"
                            : "is " + why_not_certified(plan));
}

}  // namespace

std::optional<WhyNot> why_not(const Plan& plan, const PlanRequest& request,
                              const std::vector<std::string>& choice, Problems& problems) {
  const std::size_t before = problems.size();
  PlanRequest changed = request;
  changed.fixed = parse_settings(choice, problems);
  for (std::size_t i = before; i < problems.size(); ++i) problems[i].file = "--why-not";
  if (problems.size() != before) return std::nullopt;
  auto outcome = make_plan(changed, problems);
  for (std::size_t i = before; i < problems.size(); ++i) {
    if (problems[i].file == "--fix") problems[i].file = "--why-not";
  }
  if (!outcome) return std::nullopt;
  WhyNot answer{.choice = choice, .outcome = *std::move(outcome)};
  if (const Plan* other = std::get_if<Plan>(&answer.outcome)) {
    answer.extra_s = other->prediction.step_s - plan.prediction.step_s;
    answer.gpus = gpus_of(*other);
    answer.worse = worse_by(plan, priced(*other));
    answer.margin = std::max(0.0, answer.worse) / (2 + answer.worse);
    const bool counted = objective_of(plan) == Objective::fewest_gpus;
    if (counted && answer.gpus > gpus_of(plan)) answer.margin = 1;
    std::map<Phase, Seconds>& all = answer.phase_extra_s;
    for (const auto& [phase, seconds] : other->prediction.phases_s) all[phase] = seconds;
    for (const auto& [phase, seconds] : plan.prediction.phases_s) all[phase] -= seconds;
    answer.causes =
        parts_apart(step_parts(plan, request.calibration), step_parts(*other, request.calibration));
  }
  return answer;
}

std::string describe(const WhyNot& answer, const Plan& plan) {
  std::string out = "why not " + joined(answer.choice) + "?\n";
  if (const Infeasible* none = std::get_if<Infeasible>(&answer.outcome)) {
    out += "  because nothing with it fits:\n";
    for (const std::string& reason : none->reasons) out += "  " + reason + "\n";
    if (!none->nearest_fix.empty()) out += "  nearest fix: " + none->nearest_fix + "\n";
    return out;
  }
  const Plan& other = std::get<Plan>(answer.outcome);
  constexpr double kSame = 1e-9;
  const double open = plan.certificate.gap + kSame;
  if (std::abs(answer.worse) <= open) {
    return out + "  the plan has it, or is as good with it\n" + changes_text(plan, other);
  }
  std::array<char, 160> text{};
  const Priced with = priced(other);
  const bool counted = objective_of(plan) == Objective::fewest_gpus;
  std::string what = "  the best plan with it " + worse_text(plan, with);
  if (!counted) {
    what += " (" + value_text(plan, with) + " instead of " + value_text(plan, priced(plan)) + ")";
  }
  out += what + (answer.worse > 0 ? ":\n" : ": " + why_better_is_possible(plan) + "\n");
  if (answer.gpus != gpus_of(plan) && !counted) {
    out += "  on " + std::to_string(answer.gpus) + " GPUs instead of " +
           std::to_string(gpus_of(plan)) + "\n";
  }
  out += "  step           " + seconds_text(answer.extra_s) + "\n" + causes_text(answer);
  std::vector<std::pair<Seconds, Phase>> parts;
  for (const auto& [phase, extra] : answer.phase_extra_s) {
    if (std::abs(extra.value) > 1e-3 * std::abs(answer.extra_s.value))
      parts.emplace_back(extra, phase);
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first.value) > std::abs(b.first.value);
  });
  for (const auto& [extra, phase] : parts) {
    std::snprintf(text.data(), text.size(), "  %-14s %s\n", std::string(name_of(phase)).c_str(),
                  seconds_text(extra).c_str());
    out += text.data();
  }
  out += changes_text(plan, other);
  if (answer.margin >= 1) {
    return out + "  errors of the predicted times do not change the number of GPUs\n";
  }
  std::snprintf(text.data(), text.size(),
                "  it would win if the model erred by more than %.1f %% on each plan\n",
                100 * answer.margin);
  if (answer.worse > 0) out += text.data();
  return out;
}

std::string to_json(const WhyNot& answer) {
  Node root = map_node();
  Node words = list_node();
  for (const std::string& word : answer.choice) words.items.push_back(node_of(word));
  add(root, "choice", std::move(words));
  if (const Infeasible* none = std::get_if<Infeasible>(&answer.outcome)) {
    add_to(root, *none);
    return json_text(root);
  }
  add(root, "feasible", node_of(true));
  add(root, "gpus", node_of(std::int64_t{answer.gpus}));
  add(root, "worse_by", node_of(answer.worse));
  add(root, "extra_s", node_of(answer.extra_s));
  Node phases = map_node();
  for (const auto& [phase, extra] : answer.phase_extra_s)
    add(phases, name_of(phase), node_of(extra));
  add(root, "phase_extra_s", std::move(phases));
  Node causes = map_node();
  for (const auto& [part, extra] : answer.causes) add(causes, name_of(part), node_of(extra));
  add(root, "part_extra_s", std::move(causes));
  add(root, "margin", node_of(answer.margin));
  return json_text(root);
}

}  // namespace tessera
