// AdamW on one rank's arena: flat fp32 gradients, reduction over the role's ranks, global norm and
// clipping, fp32 master weights; with ZeRO-1 each data-parallel rank keeps and updates one part.
//
// The gradient buffer has the arena's element order, padding included, so a reduction is one
// message and the update one call. Gradients are summed over data-parallel ranks: whoever makes
// them divides by their number. Decoupled decay and bias correction as torch.optim.AdamW; decay
// only on rows that the parameter table marks. Sizes in elements. Collective over the role; one
// thread per rank.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "executor/comm/groups.h"
#include "executor/model/weights.h"

namespace tessera {

/// Defaults are verl's (actor.optim, actor.grad_clip).
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;  // 0 = no clipping
};

/// What has to be saved: this rank's part [first, first + count) of the arena.
struct OptimizerState {
  std::int64_t first = 0, count = 0;
  std::int64_t steps = 0;                     // finished ones
  torch::Tensor master, exp_avg, exp_avg_sq;  // fp32 [count]
};

struct StepResult {
  double grad_norm = 0;  // before clipping, of the whole model
  bool applied = true;   // false: the norm was not finite, nothing changed
};

class Optimizer {
 public:
  /// Keeps references. Makes the weights' tensors leaves whose gradients accumulate in the flat
  /// buffer. Master weights start from the weights as they are now.
  Optimizer(Weights& weights, const ParallelGroups& groups, const AdamWOptions& options);

  /// By table row, views of the flat fp32 buffer; undefined where not held.
  const std::vector<torch::Tensor>& gradients() const { return gradients_; }
  void zero_gradients() { flat_gradients_.zero_(); }

  /// Reduces the gradients over the role and updates the weights of every rank. Afterwards the
  /// gradients of this rank's part are reduced and clipped, the others are unspecified.
  StepResult step(double learning_rate);

  /// Shares storage with the optimizer.
  const OptimizerState& state() const { return state_; }
  /// Copies; the parts must be equal. The weights are set from the master weights.
  void load_state(const OptimizerState& state);
  std::int64_t bytes() const;  // gradients and states

 private:
  void find_ranges();
  void reduce_gradients();
  double global_norm();
  void publish_weights();

  Weights& weights_;
  const ParallelGroups& groups_;
  AdamWOptions options_;
  bool sharded_ = false;  // ZeRO-1
  OptimizerState state_;
  torch::Tensor flat_gradients_;          // a multiple of the data-parallel size when sharded
  torch::Tensor part_;                    // the part's reduced gradients
  std::vector<torch::Tensor> gradients_;  // by table row
  std::vector<torch::Tensor> counted_;    // views of part_ that this rank counts in the norm
  struct Ranges {
    double decay = 0;
    std::vector<torch::Tensor> master, gradient, exp_avg, exp_avg_sq, steps;
  };
  std::vector<Ranges> ranges_;  // one per distinct weight decay
  torch::Tensor steps_;         // fp32 scalar
};

}  // namespace tessera
