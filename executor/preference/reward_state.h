// What training a reward model leaves on disk: checkpoints of its state, and the model's folder.
//
// Owned by one rank's training; functions are collective over the world.
#pragma once

#include <filesystem>
#include <optional>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/comm/groups.h"
#include "executor/run_state/snapshot.h"

namespace tessera {

class RewardState {
 public:
  /// Keeps references. `data`: what the steps' numbers mean.
  RewardState(const std::filesystem::path& output, const Weights& weights, Trainer& trainer,
              Communicator& host, CheckpointData data);

  /// Restores the newest checkpoint that is whole and returns its step; 0 where there is none.
  /// Throws Error (bad_input) where all of them are broken, or are of other data.
  std::int64_t resume();
  /// Writes a checkpoint; its failure is thrown as Error (io).
  void save(std::int64_t step);

 private:
  std::filesystem::path checkpoints_;
  Communicator& host_;
  CheckpointData data_;
  const Weights& weights_;
  Trainer& trainer_;
  RoleSnapshot snapshot_;
  CheckpointWriter writer_;
};

/// A folder of transformers' AutoModelForSequenceClassification with one label: the weights, and
/// configuration and tokenizer of `source`. Takes the place of one that exists. Throws Error (io).
void save_reward_model(const std::filesystem::path& folder, const std::filesystem::path& source,
                       const Weights& weights, const ParallelGroups& groups, Trainer& trainer);

}  // namespace tessera
