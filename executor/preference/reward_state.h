// What training a reward model leaves on disk: checkpoints of its state, and the model's folder.
//
// Owned by one rank's training; functions are collective over the world.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cost_models/documents/problem_list.h"
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
  /// Numbers of a step that has ended are finite: the checkpoint that it went on from was sound,
  /// and older ones may go.
  void went_well() {
    if (saved_ > 0) writer_.prove(saved_);
  }

 private:
  std::filesystem::path checkpoints_;
  Communicator& host_;
  CheckpointData data_;
  const Weights& weights_;
  Trainer& trainer_;
  RoleSnapshot snapshot_;
  std::int64_t saved_ = 0;  // step of the newest checkpoint, or 0
  CheckpointWriter writer_;
};

/// config.json of a classifier of one label with the body of the model in `source`, whose answers
/// end with the token `end`. transformers scores the last token that is not pad_token_id, and takes
/// several sequences at once only where there is one: it is the tokenizer's where `source` has none
/// or pads with `end`, and left out where that ends answers, too. Empty and a Problem for models
/// that transformers has no such class for.
std::string classifier_config(const std::filesystem::path& source, std::int32_t end,
                              Problems& problems);

/// A folder of transformers' AutoModelForSequenceClassification with one label: the weights,
/// `config` and the tokenizer of `source`. Takes the place of one that exists. Throws Error (io).
void save_reward_model(const std::filesystem::path& folder, const std::filesystem::path& source,
                       const std::string& config, const Weights& weights,
                       const ParallelGroups& groups, Trainer& trainer);

}  // namespace tessera
