// Trains a reward model on preferences: steps, metrics, checkpoints and the model's folder.
//
// The model is a language model's body with a value head on the last token, in one layout over all
// ranks; steps are the trainer's and the optimizer's, as an actor's. Files of the output folder:
// plan.json, metrics.jsonl and TensorBoard's beside it, checkpoints/global_step_N, hf. Collective
// over the world; one thread per rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cost_models/layout/rank_map.h"
#include "cost_models/memory.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"
#include "executor/batching/schedule.h"
#include "executor/launch/device_setup.h"
#include "executor/preference/pairs.h"
#include "executor/train/optimizer.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {

struct RewardTrainingOptions {
  std::filesystem::path model, output;  // folders; the output's may exist only with `resume`
  std::string config_json;              // of what is left (classifier_config, reward_state.h)
  std::string plan_json;                // left in the output folder; empty = none
  ParallelLayout layout;                // of all ranks
  RankOrder rank_order = RankOrder::contiguous;
  DType dtype = DType::fp32;  // of the weights; master weights are fp32
  Recompute recompute = Recompute::none;
  AdamWOptions optimizer;
  LrSchedule schedule;              // its total_steps are the run's
  std::int64_t pairs_per_step = 0;  // at most those of the data
  /// Of a micro-batch of one replica that is scored or trained on; 0 = one micro-batch.
  std::int64_t values_tokens = 0, update_tokens = 0;
  double center_coefficient = 0;  // preference_loss.h
  std::uint64_t seed = 0;         // of the pairs' order and of a head that is drawn
  std::int64_t save_freq = 0;     // steps between two checkpoints; 0 = none
  std::int64_t test_freq = 0;     // steps between two validations, and one after the last; 0: that
  bool resume = false;            // from the newest checkpoint of `output`, where it has one
};

struct RewardTrainingResult {
  std::int64_t steps = 0;                 // finished ones, those before a resume among them
  StopReason stopped = StopReason::none;  // by a signal: saved
};

/// `model`: with a value head. Without `validation` (nullptr) nothing is validated. Throws Error:
/// bad_input for weights that do not fit and for a checkpoint of other data, io.
RewardTrainingResult train_reward_model(RankSetup& setup, const ModelSpec& model,
                                        const PreferenceSet& train, const PreferenceSet* validation,
                                        const RewardTrainingOptions& options);

}  // namespace tessera
