// A plan's value under the objective that it was searched by: numbers, units, words.
//
// Pure. Values of step_s are seconds, of tokens_per_s_per_gpu tokens per second and GPU, of cost
// GPU seconds per step (each GPU by its price over the cluster's mean price), of gpus GPUs.
#pragma once

#include <string>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/request/objective.h"

namespace tessera {

struct ClusterSpec;
struct Plan;
struct RunnerUp;

/// The parts of a plan's value.
struct Priced {
  Seconds step_s;
  int gpus = 0;
  double billed_gpus = 0;  // by price
};

/// The weight of a GPU of each group: its price over the mean, 1 where not all state one.
std::vector<double> billing_weights(const ClusterSpec& cluster);

/// GPUs that the plan uses; ranks count all GPUs before its own where other types come first.
int gpus_of(const Plan& plan);

/// The objective of the plan's search; step time where there was none.
Objective objective_of(const Plan& plan);
Priced priced(const Plan& plan);
Priced priced(const Plan& plan, const RunnerUp& other);
/// The plan as another one's certificate names it, without the settings that make it.
RunnerUp summary_of(const Plan& plan);

/// The value in the objective's unit. `plan`: whose objective, workload and prices count.
double value_of(const Plan& plan, const Priced& other);
/// The value with its unit: "1.25 s", "4533.9 tokens/s/GPU", "2 GPUs, step 1.25 s".
std::string value_text(const Plan& plan, const Priced& other);

/// What a step costs: money where the cluster states a price per GPU hour, else GPU seconds.
struct StepCost {
  double value = 0;
  bool money = false;
};
StepCost cost_of(const Plan& plan, const Priced& other);

/// By how much another plan is worse, as a part of the plan's value; of equal GPUs the step, where
/// those are the objective. Below zero: it is better.
double worse_by(const Plan& plan, const Priced& other);
/// By how much the plan is behind one that is better, as a part of that one's value.
double behind(const Plan& plan, const RunnerUp& better);
/// What makes the other worse is its step alone: that is the objective, or the GPUs are as many.
bool compares_steps(const Plan& plan, const Priced& other);
/// "takes 5.1 % longer", "costs 5.1 % more", "makes 5.1 % fewer tokens/s/GPU", "needs 2 GPUs
/// instead of 1".
std::string worse_text(const Plan& plan, const Priced& other);

}  // namespace tessera
