// The loss of a reward model by preferences (Bradley and Terry 1952; Ouyang et al. 2022), as TRL's
// RewardTrainer has it: -log sigmoid(chosen - rejected - margin), and a penalty on scores whose sum
// is not 0.
//
// Made of the scores of a whole batch (Trainer::values), so that the two sequences of a pair may be
// in any micro-batch of any replica: the backward pass is given what it needs to know of the other.
// Pure functions; no torch.
#pragma once

#include <span>
#include <vector>

#include "executor/batching/batch.h"

namespace tessera {

struct PreferenceLoss {
  double value = 0;              // mean over the pairs
  double accuracy = 0;           // the part of the pairs whose chosen answer scores higher
  double margin = 0;             // by how much it does, on average
  std::vector<double> gradient;  // by each sequence's score

  /// For an update of the same batch, whose sequences have one response token each: the one behind
  /// the token that is scored. `replicas`: data-parallel ranks (batch.h).
  LossFunction function(int replicas) const;
};

/// Of a batch of pairs, chosen and rejected one after the other. `margins`: by pair.
/// `center_coefficient`: of (chosen + rejected)^2; TRL's center_rewards_coefficient.
PreferenceLoss preference_loss(std::span<const float> scores, std::span<const double> margins,
                               double center_coefficient);

}  // namespace tessera
