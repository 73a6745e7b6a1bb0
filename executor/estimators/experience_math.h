// The compute calls of a step on the experience of all ranks: scores to token rewards, KL in the
// reward, advantages, and what is reported about them.
//
// Pure functions of their arguments in fp64, so every rank that holds the whole experience gets the
// same bits.
#pragma once

#include <cstdint>
#include <optional>

#include "executor/correction/rollout_correction.h"
#include "executor/estimators/estimators.h"
#include "executor/rl/experience.h"
#include "executor/rl/kl.h"
#include "executor/rl/pf_ppo.h"

namespace tessera {

/// token_rewards: 0 but the score on the response's last token.
void place_scores(Experience& experience);

/// Subtracts the KL between old_log_prob and ref_log_prob from token_rewards and updates the
/// controller; returns its metrics.
Metrics subtract_kl(Experience& experience, KlPenalty penalty, KlController& controller);

/// Compares old_log_prob with rollout_log_prob: fills rollout_is_weights and `rejected` as the
/// options say; returns metrics.
Metrics correct_rollout(Experience& experience, const RolloutCorrection& options);

/// Fills advantages and returns from token_rewards and what else the estimator reads. Groups are
/// equal uids.
void compute_advantages(Experience& experience, const AdvantageOptions& options);

/// As many sequences, drawn from these with replacement by weights of their scores. Draws depend on
/// the seed and the step alone. A sequence drawn twice is there twice, so (prompt, sample) names it
/// no more.
Experience resampled(const Experience& experience, const PfPpo& options, std::uint64_t seed);

struct LengthLimits {
  std::int64_t prompt = 0, response = 0;  // 0 = not reported against
};

/// verl's data metrics: critic/{score,rewards,advantages,returns,values}/{mean,max,min},
/// critic/vf_explained_var, response_length/* and prompt_length/* {mean,max,min,clip_ratio} and,
/// where rollout and old log-probs exist, training/rollout_probs_diff_{max,mean,std}. Only of the
/// fields that are filled.
Metrics data_metrics(const Experience& experience, const LengthLimits& limits = {});

}  // namespace tessera
