// A copy of what training has made of a role, in host memory, for a checkpoint.
//
// The copy is taken between two steps, while nothing is computed; what is written from it later no
// longer concerns the training. Memory is kept from one snapshot to the next. One thread.
#pragma once

#include "executor/tensor/torch.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/state_file.h"
#include "executor/run_state/state_pieces.h"
#include "executor/storage/background_memory.h"
#include "executor/train/trainer.h"

namespace tessera {

/// The states of an optimizer, under torch's names.
inline constexpr const char* kMaster = "master";
inline constexpr const char* kExpAvg = "exp_avg";
inline constexpr const char* kExpAvgSq = "exp_avg_sq";

/// "actor.exp_avg/NAME".
std::string state_name(const std::string& role, const char* state, const std::string& tensor);

class RoleSnapshot {
 public:
  /// Keeps references.
  RoleSnapshot(std::string role, const Weights& weights, Trainer& trainer);

  /// Begins to make the copies' memory, beside what follows; take() does it where nobody has.
  void prepare();
  /// Copies the optimizer's state of the pieces that this rank writes. On a GPU the copies are
  /// ordered behind the stream's work and done when this returns.
  void take();
  /// The tensors of the last take(); their bytes are this object's.
  std::vector<StateTensor> tensors() const;

 private:
  /// Neighbouring pieces are copied at once.
  struct Run {
    std::int64_t shard = 0, count = 0;
  };

  std::string role_;
  const Weights& weights_;
  Trainer& trainer_;
  std::vector<StatePiece> pieces_;
  std::vector<Run> runs_;
  std::int64_t count_ = 0;
  std::unique_ptr<BackgroundMemory> copies_;  // fp32 [3, count]
};

/// torch's random generators of this rank as tensors of a file; views of `bytes`.
std::vector<StateTensor> generator_tensors(const std::vector<torch::Tensor>& states);

}  // namespace tessera
