// The plan of a reward model's training: its layout, what a step takes and what its ranks hold.
//
// A step scores its sequences and then trains on them, as a run's critic does in `values` and
// `update_critic`: it is planned as these two calls of one role, on sequences as long as those of
// the pairs. Reads the files that are named; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/spec/model_spec.h"
#include "executor/preference/pairs.h"
#include "executor/preference/reward_training.h"
#include "planner/plan/plan.h"

namespace tessera {

struct RewardPlanQuestion {
  std::string cluster;  // preset or file
  std::string model;    // folder
  std::int64_t pairs_per_step = 0;
  std::optional<DType> dtype;      // of the weights; nullopt: bf16, on a CPU fp32
  std::vector<std::string> fixed;  // as --fix of `tessera plan`: "critic.tp=2"
};

/// The settings that keep a layout.
std::vector<std::string> settings_of(const ParallelLayout& layout);

/// The constants are those that the plan was made with.
struct RewardPlan {
  Plan plan;
  Calibration calibration;
};

/// The quickest plan; its only role is the critic. Throws Error: bad_input for files, infeasible
/// with the reasons where nothing fits.
RewardPlan plan_reward_training(const RewardPlanQuestion& question, const PreferenceSet& pairs);

/// Layout, type, recomputation, offloading and micro-batches are the plan's from now on, which the
/// output folder gets.
void follow(const Plan& plan, RewardTrainingOptions& training);

/// The plan as `tessera plan` prints it.
std::string described(const RewardPlan& planned);

}  // namespace tessera
