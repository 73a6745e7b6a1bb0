#include "planner/request/plan_value.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "cost_models/documents/printed.h"
#include "cost_models/spec/node_groups.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"

namespace tessera {
namespace {

std::string gpus_text(int gpus) { return printed(gpus == 1 ? "%d GPU" : "%d GPUs", gpus); }

std::set<int> ranks_of(const Plan& plan) {
  std::set<int> ranks;
  for (const RolePlan& role : plan.roles) ranks.insert(role.ranks.begin(), role.ranks.end());
  return ranks;
}

// As the search counts them: each GPU by its type's price, in units of the mean price.
double billed_gpus_of(const Plan& plan) {
  if (plan.cluster.groups.empty()) return gpus_of(plan);
  const std::vector<double> weights = billing_weights(plan.cluster);
  double billed = 0;
  for (const int rank : ranks_of(plan)) {
    billed += weights[static_cast<std::size_t>(group_of(plan.cluster, rank))];
  }
  return billed;
}

}  // namespace

std::vector<double> billing_weights(const ClusterSpec& cluster) {
  std::vector<double> weights(std::max<std::size_t>(1, cluster.groups.size()), 1.0);
  const bool all = std::all_of(cluster.groups.begin(), cluster.groups.end(),
                               [](const NodeGroup& group) { return group.price_per_gpu_hour > 0; });
  if (!all) return weights;
  for (std::size_t group = 0; group < cluster.groups.size(); ++group) {
    weights[group] = cluster.groups[group].price_per_gpu_hour / cluster.price_per_gpu_hour;
  }
  return weights;
}

int gpus_of(const Plan& plan) {
  return plan.cluster.groups.empty() ? plan.world_size() : static_cast<int>(ranks_of(plan).size());
}

Objective objective_of(const Plan& plan) {
  return objective_from(plan.certificate.objective).value_or(Objective::step_time);
}

Priced priced(const Plan& plan) {
  return {plan.prediction.step_s, gpus_of(plan), billed_gpus_of(plan)};
}

Priced priced(const Plan& plan, const RunnerUp& other) {
  const int gpus = other.gpus > 0 ? other.gpus : gpus_of(plan);
  return {other.step_s, gpus, other.billed_gpus > 0 ? other.billed_gpus : gpus};
}

RunnerUp summary_of(const Plan& plan) {
  const std::string off = is_one_step_off(plan.schedule) ? ", one step off" : "";
  RunnerUp own{describe_placement(plan) + off, describe_layouts(plan), plan.prediction.step_s};
  const Priced price = priced(plan);
  own.gpus = price.gpus;
  const bool by_price = objective_of(plan) == Objective::cost && !plan.cluster.groups.empty();
  own.billed_gpus = by_price ? price.billed_gpus : 0;
  return own;
}

double value_of(const Plan& plan, const Priced& other) {
  switch (objective_of(plan)) {
    case Objective::step_time:
      break;
    case Objective::tokens_per_gpu: {
      const double tokens =
          plan.prediction.tokens_per_s_per_gpu * plan.prediction.step_s.value * gpus_of(plan);
      const Seconds gpu_time = other.step_s * other.gpus;
      return gpu_time > 0 ? tokens / gpu_time.value : 0;
    }
    case Objective::cost:
      return other.step_s * other.billed_gpus;
    case Objective::fewest_gpus:
      return other.gpus;
  }
  return other.step_s;
}

StepCost cost_of(const Plan& plan, const Priced& other) {
  const double gpu_seconds = (other.step_s * other.billed_gpus).value;
  const double price = plan.cluster.price_per_gpu_hour * gpu_seconds / 3600;
  return price > 0 ? StepCost{price, true} : StepCost{gpu_seconds, false};
}

std::string value_text(const Plan& plan, const Priced& other) {
  const double value = value_of(plan, other);
  switch (objective_of(plan)) {
    case Objective::step_time:
      break;
    case Objective::tokens_per_gpu:
      return printed("%.1f tokens/s/GPU", value);
    case Objective::cost: {
      const StepCost cost = cost_of(plan, other);
      return printed(cost.money ? "%.4f per step" : "%.2f GPU s per step", cost.value);
    }
    case Objective::fewest_gpus:
      return printed("%d GPUs, step ", other.gpus) + in_seconds(other.step_s);
  }
  return in_seconds(Seconds{value});
}

double worse_by(const Plan& plan, const Priced& other) {
  const Priced own = priced(plan);
  double best = own.step_s, value = other.step_s;
  switch (objective_of(plan)) {
    case Objective::step_time:
      break;
    case Objective::tokens_per_gpu:
      best *= own.gpus;
      value *= other.gpus;
      break;
    case Objective::cost:
      best *= own.billed_gpus;
      value *= other.billed_gpus;
      break;
    case Objective::fewest_gpus:
      if (other.gpus == own.gpus) break;
      best = own.gpus;
      value = other.gpus;
  }
  return best > 0 ? value / best - 1 : 0;
}

double behind(const Plan& plan, const RunnerUp& better) {
  return 1 / (1 + worse_by(plan, priced(plan, better))) - 1;
}

bool compares_steps(const Plan& plan, const Priced& other) {
  constexpr double kSame = 1e-9;
  const Priced own = priced(plan);
  switch (objective_of(plan)) {
    case Objective::step_time:
      break;
    case Objective::tokens_per_gpu:
    case Objective::fewest_gpus:
      return other.gpus == own.gpus;
    case Objective::cost:
      return std::abs(other.billed_gpus - own.billed_gpus) <= kSame * own.billed_gpus;
  }
  return true;
}

std::string worse_text(const Plan& plan, const Priced& other) {
  const double worse = worse_by(plan, other);
  const std::string part = percent(std::abs(worse));
  switch (objective_of(plan)) {
    case Objective::step_time:
      break;
    case Objective::tokens_per_gpu:
      return "makes " + percent(std::abs(1 - 1 / (1 + worse))) + (worse < 0 ? " more" : " fewer") +
             " tokens/s/GPU";
    case Objective::cost:
      return "costs " + part + (worse < 0 ? " less" : " more");
    case Objective::fewest_gpus:
      if (other.gpus == gpus_of(plan)) break;
      return "needs " + gpus_text(other.gpus) + " instead of " + std::to_string(gpus_of(plan));
  }
  return "takes " + part + (worse < 0 ? " less" : " longer");
}

}  // namespace tessera
