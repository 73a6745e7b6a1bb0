// Micro-batches through the stages of a pipeline.
//
// Pure. A forward pipeline of m micro-batches takes sum_s t_s + (m - 1) max_s t_s,
// 1F1B what pipeline_time.h says; interleaved chunks shorten the bubble (Narayanan et al. 2021,
// sec. 2.2.2), and where a plan cuts them in its own way their schedule is played. What
// micro-batches that differ add is a factor of the whole (cost_models/few_sequences.h).
#pragma once

#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/role/micro_batch.h"
#include "planner/pricing/role/role_cost.h"

namespace tessera {

/// Hidden states of `tokens` that a rank hands to the next stage.
Traffic hop_bytes(const RoleLayout& layout, const Candidate& candidate, double tokens);

struct PipelineTime {
  OperationTime whole;
  Seconds slowest;     // one micro-batch on the slowest stage
  Seconds incomplete;  // of `whole`: what a last round of interleaved chunks that is not full costs
  Seconds bubble;      // of `whole`: the slowest stage waits for what other stages compute
};

/// `count` micro-batches of so many tokens, as `cost` prices one, through all stages; forward
/// alone, or as 1F1B with `training`. `ends`: exposed_ends of the first stage.
PipelineTime pipeline_time(const RoleLayout& layout, const Candidate& candidate,
                           const MicroBatchCost& cost, const ExposedEnds& ends, double count,
                           double tokens, bool training);

/// Handing them to the next stage, in every chunk of a stage; 0 where there is one stage.
Seconds hop_seconds(const RoleLayout& layout, const Candidate& candidate, double tokens);

/// What one micro-batch takes at least on all stages together, what they hand on left out, and of
/// it what its layers take.
struct StagesSeconds {
  Seconds all, layers;
};
/// `slow`: of kernels, 1 / their share of a core.
StagesSeconds of_all_stages(const RoleModel& model, const MicroBatchCost& cost, double slow,
                            bool training, const Calibration& calibration);

/// What one micro-batch takes forward on each chunk, by the mean of all. Precondition: the layout
/// has a cut of its own.
std::vector<double> chunk_shares(const RoleLayout& layout, const MicroBatchCost& cost);

}  // namespace tessera
