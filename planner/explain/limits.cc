#include "planner/explain/limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/explain/memory_fit.h"
#include "planner/explain/report.h"
#include "planner/plan/amounts.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/step_parts.h"
#include "planner/request/describe.h"
#include "planner/request/plan_value.h"

namespace tessera {
namespace {

// Classes that take something, the largest first.
std::vector<std::pair<std::string_view, Bytes>> present(const MemoryUse& use) {
  std::vector<std::pair<std::string_view, Bytes>> classes;
  for (const auto& one : memory_classes(use)) {
    if (one.second > 0) classes.push_back(one);
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return classes;
}

Node classes_node(const MemoryUse& use) {
  Node classes = map_node();
  for (const auto& [name, bytes] : present(use)) add(classes, name, node_of(bytes));
  return classes;
}

Bytes most_of(const RolePlan& role, Phase& phase) {
  Bytes most{-1};
  for (const auto& [each, use] : role.memory) {
    if (use.total() <= most) continue;
    most = use.total();
    phase = each;
  }
  return most;
}

// What each role's fullest rank holds, in the phase in which it holds most.
std::string memory_by_role(const Plan& plan) {
  std::string out;
  for (const RolePlan& role : plan.roles) {
    Phase phase = Phase::load;
    const Bytes most = most_of(role, phase);
    if (most < 0) continue;
    out += (out.empty() ? "  by role: " : "; ") + std::string(name_of(role.role)) + " " +
           in_gib(most) + " in " + std::string(name_of(phase));
  }
  return out.empty() ? out : out + "\n";
}

// The prediction as plan.json has it: times, rates, and memory per role, phase and class.
Node prediction_node(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  Node root = map_node(), phases = map_node(), memory = map_node();
  add(root, "step_s", node_of(prediction.step_s));
  for (const auto& [phase, seconds] : prediction.phases_s) {
    add(phases, name_of(phase), node_of(seconds));
  }
  add(root, "phases_s", std::move(phases));
  add(root, "exposed_comm_s", node_of(prediction.exposed_comm_s));
  add(root, "tokens_per_s_per_gpu", node_of(prediction.tokens_per_s_per_gpu));
  add(root, "mfu", node_of(prediction.mfu));
  add(root, "step_error_s", node_of(prediction.step_error_s));
  for (const RolePlan& role : plan.roles) {
    Node by_phase = map_node();
    for (const auto& [phase, use] : role.memory) {
      add(by_phase, name_of(phase), classes_node(use));
    }
    add(memory, name_of(role.role), std::move(by_phase));
  }
  add(root, "memory", std::move(memory));
  return root;
}

// Each role as it is, and with its layout on another GPU type.
Node types_node(const std::vector<OnOtherType>& types) {
  Node list = list_node();
  for (const OnOtherType& one : types) {
    Node each = map_node();
    add(each, "role", node_of(name_of(one.role)));
    add(each, "gpu", node_of(one.types));
    add(each, "first_rank", node_of(one.first_rank));
    add(each, "last_rank", node_of(one.last_rank));
    add(each, "seconds", node_of(one.seconds));
    add(each, "other", node_of(one.other));
    add(each, "has_room", node_of(one.has_room));
    if (one.needed > 0) {
      add(each, "needed_bytes", node_of(one.needed));
      add(each, "limit_bytes", node_of(one.limit));
    } else {
      add(each, "other_s", node_of(one.other_s));
    }
    list.items.push_back(std::move(each));
  }
  return list;
}

// Of the plan, by its engine; nothing where the plan names none.
std::vector<std::string> engine_refusals(const Plan& plan) {
  std::vector<std::string> refusals;
  Problems none;
  if (engine_of(plan.engine, none) == nullptr) return refusals;
  for (const Problem& problem : outside_capabilities(plan)) {
    refusals.push_back(to_string({.place = problem.place,
                                  .found = problem.found,
                                  .expected = problem.expected,
                                  .hint = problem.hint}));
  }
  return refusals;
}

void add_refusals(const Plan& plan, Node& root) {
  Node each = list_node();
  for (const std::string& refusal : engine_refusals(plan)) each.items.push_back(node_of(refusal));
  if (!each.items.empty()) add(root, "engine_refuses", std::move(each));
}

}  // namespace

PlanLimits limits_of(const Plan& plan, const Calibration& calibration) {
  const Prediction& prediction = plan.prediction;
  PlanLimits limits{.peak_bytes = prediction.peak_bytes};
  Seconds longest{-1};
  for (const auto& [phase, seconds] : prediction.phases_s) {
    if (seconds <= longest) continue;
    longest = seconds;
    limits.longest = phase;
  }
  if (prediction.step_s > 0) {
    limits.longest_share = std::max(Seconds{}, longest) / prediction.step_s;
    limits.communication_share = prediction.exposed_comm_s / prediction.step_s;
  }
  limits.front_end = waited_for_front_end(plan, calibration);
  Bytes most{-1};
  for (const RolePlan& role : plan.roles) {
    for (const auto& [phase, use] : role.memory) {
      if (use.total() <= most) continue;
      most = use.total();
      limits.fullest_role = role.role;
      limits.fullest_phase = phase;
      limits.fullest = use;
    }
  }
  const int view = plan.cluster.groups.empty()  // else of that role's GPU type
                       ? 0
                       : view_of(plan.cluster, plan.find(limits.fullest_role)->ranks);
  limits.limit_bytes = usable_memory(plan, calibration, view);
  return limits;
}

std::string explain(const Plan& plan, const Calibration& calibration,
                    const std::vector<ReshardLimit>& reshards) {
  const PlanLimits limits = limits_of(plan, calibration);
  std::string out = "time: " + std::string(name_of(limits.longest)) + " takes " +
                    percent(limits.longest_share) + " of the step; communication that nothing " +
                    "hides takes " + percent(limits.communication_share) + "\n" +
                    describe_front_end(plan, calibration);
  out += "memory: the fullest rank holds " + in_gib(limits.peak_bytes) + " of " +
         in_gib(limits.limit_bytes) + "; most by the " + std::string(name_of(limits.fullest_role)) +
         " in " + std::string(name_of(limits.fullest_phase)) + ":";
  for (const auto& [name, bytes] : present(limits.fullest)) {
    out += " " + std::string(name) + " " + in_gib(bytes) + ",";
  }
  out.back() = '\n';
  out += describe_fit(plan, calibration);
  out += memory_by_role(plan);
  out += "layouts: " + describe_layouts(plan) + "\n";
  for (const std::string& refusal : engine_refusals(plan)) {
    out += "engine '" + plan.engine + "' cannot run it: " + refusal + "\n";
  }
  const Role asked = plan.find(Role::rollout) != nullptr ? Role::rollout : plan.roles.front().role;
  return out + describe(reshards) + describe_certificate(plan) + "ask further: --why-not '" +
         std::string(name_of(asked)) +
         ".tp=8' (what a choice costs), --memory (what a rank holds, class by\nclass), --advice "
         "(what practice tries when memory runs out), --rules "
         "published-practice (rules on the\nprediction, or with --run on a run)\n";
}

namespace {

// What the search was given, and by how much the best plan without it is better.
void add_fixed(Node& root, const Plan& plan) {
  const Certificate& certificate = plan.certificate;
  if (!certificate.fixed.empty()) {
    Node fixed = list_node();
    for (const std::string& setting : certificate.fixed) fixed.items.push_back(node_of(setting));
    add(root, "fixed", std::move(fixed));
  }
  if (certificate.better.used()) {
    add(root, "behind_better", node_of(behind(plan, certificate.better)));
  }
}

}  // namespace

std::string explain_json(const Plan& plan, const Calibration& calibration,
                         const std::vector<ReshardLimit>& reshards,
                         const std::vector<OnOtherType>& types) {
  const PlanLimits limits = limits_of(plan, calibration);
  Node root = map_node();
  add(root, "longest_phase", node_of(name_of(limits.longest)));
  add(root, "longest_share", node_of(limits.longest_share));
  add(root, "communication_share", node_of(limits.communication_share));
  if (limits.front_end > 0) add(root, "front_end_s", node_of(limits.front_end));
  add(root, "peak_bytes", node_of(limits.peak_bytes));
  add(root, "limit_bytes", node_of(limits.limit_bytes));
  add(root, "memory_fit", fit_node(plan, calibration));
  add(root, "fullest_role", node_of(name_of(limits.fullest_role)));
  add(root, "fullest_phase", node_of(name_of(limits.fullest_phase)));
  add(root, "fullest_bytes", classes_node(limits.fullest));
  add(root, "prediction", prediction_node(plan));
  add_refusals(plan, root);
  if (!reshards.empty()) {
    Node moves = list_node();
    for (const ReshardLimit& reshard : reshards) {
      Node each = map_node();
      add(each, "from", node_of(name_of(reshard.from)));
      add(each, "to", node_of(name_of(reshard.to)));
      add(each, "predicted_s", node_of(reshard.predicted));
      add(each, "bound_s", node_of(reshard.bound.seconds));
      add(each, "arriving_s", node_of(reshard.bound.arriving.seconds));
      add(each, "leaving_s", node_of(reshard.bound.leaving.seconds));
      add(each, "slowest_destination_s", node_of(reshard.bound.destination.seconds));
      add(each, "narrowest_cut", node_of(reshard.bound.narrowest().where));
      moves.items.push_back(std::move(each));
    }
    add(root, "reshard", std::move(moves));
  }
  if (!types.empty()) add(root, "gpu_types", types_node(types));
  add(root, "layouts", node_of(describe_layouts(plan)));
  add(root, "certified", node_of(certified(plan) == Certified::yes));
  if (certified(plan) != Certified::yes) return json_text(root);
  const Certificate& certificate = plan.certificate;
  add(root, "objective", node_of(certificate.objective));
  add(root, "value", node_of(certificate.value));
  add(root, "lower_bound", node_of(certificate.lower_bound));
  add(root, "gap", node_of(certificate.gap));
  add(root, "margin", node_of(certificate.margin));
  if (certificate.margin_deviations > 0) {
    add(root, "margin_deviations", node_of(certificate.margin_deviations));
  }
  add_fixed(root, plan);
  Node others = list_node();
  for (const RunnerUp& other : certificate.runner_up) {
    Node each = map_node();
    add(each, "placement", node_of(other.placement));
    add(each, "description", node_of(other.description));
    add(each, "step_s", node_of(other.step_s));
    if (other.gpus > 0) add(each, "gpus", node_of(other.gpus));
    others.items.push_back(std::move(each));
  }
  add(root, "runner_up", std::move(others));
  return json_text(root);
}

}  // namespace tessera
