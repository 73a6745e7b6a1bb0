// One role's model on one rank: log-probs, values and updates.
//
// Owns gradients and optimizer; weights and groups belong to the role's worker. Every rank of the
// role calls the same functions with the same batch: the trainer balances the sequences over the
// data-parallel ranks, packs micro-batches under the token limit, runs them through the pipeline
// and returns the whole batch's results on every rank. One thread per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/batching/batch.h"
#include "executor/batching/loss_parts.h"
#include "executor/model/scores.h"
#include "executor/model/token_exchange.h"
#include "executor/sharding/sharded_gradients.h"
#include "executor/sharding/sharded_parameters.h"
#include "executor/train/optimizer.h"
#include "executor/train/packing.h"
#include "executor/train/pipeline.h"
#include "executor/train/router_replay.h"

namespace tessera {

struct InferOptions {
  std::int64_t token_limit = 0;  // per micro-batch and replica; 0 = none
  double temperature = 1.0;
  bool entropy = false;         // log_probs only
  bool sum_pi_squared = false;  // log_probs only
  bool note_experts = false;    // log_probs only, of a model with experts
  /// Of a model with adapters; false: log_probs of the model that they stand beside.
  bool adapters = true;
  /// Fixed: log-probs are those with which a rollout in the fixed order drew, bit for bit at equal
  /// tp and weights.
  SumOrder order = SumOrder::fastest;
};

struct UpdateOptions {
  std::int64_t token_limit = 0;
  double temperature = 1.0;
  bool entropy = false;  // the loss function wants entropies
  /// Of the routers' load-balancing loss (balance.h), which is added to the loss; 0 = without it,
  /// as verl 0.9.1 trains.
  double router_aux_loss_coef = 0;
  double router_z_loss_coef = 0;  // of their z loss (router_z_loss.h); 0 = without it
  double learning_rate = 0;       // learning_rate(schedule, step)
  /// accumulate(): a step follows, so gradients are reduced as soon as they are complete. Without
  /// it more sequences come before the step.
  bool last = true;
  RowsWritten written;  // as Optimizer::step tells
};

struct TrainerOptions {
  Recompute recompute = Recompute::none;
  ShardingOptions sharding;
  /// The tensor-parallel group on host memory. Where it is given, all of it is on one host and the
  /// layout has sequence parallelism, activations travel beside the products.
  Communicator* tensor_host = nullptr;
  ContextParallel context;  // its lane and side stream; the group is the role's
  /// Trained instead of the weights, which stay as they are and have them in Weights::adapters;
  /// kept by reference.
  Weights* adapters = nullptr;
  /// Leave the device in rest(): parameters that own their memory (none that peers read),
  /// gradients.
  bool offload_parameters = false, offload_gradients = false;
};

class Trainer : private LayerAccess {
 public:
  /// Keeps references. Without optimizer options the role only infers. With FSDP the weights, whole
  /// when they come, are sharded here. Throws Error (infeasible) for layouts that this executor
  /// does not train (expert_refusal, context_refusal). Collective over the role.
  Trainer(Weights& weights, const ParallelGroups& groups,
          const std::optional<AdamWOptions>& optimizer, const TrainerOptions& options = {});

  /// Log-probs of every response token.
  LogProbs log_probs(std::span<const TokenSequence> batch, const InferOptions& options);

  /// The value before each response token: what the state was worth when the token was drawn.
  TokenValues values(std::span<const TokenSequence> batch, const InferOptions& options);

  /// The value after each sequence's last token: a reward model's score.
  std::vector<float> scores(std::span<const TokenSequence> batch, const InferOptions& options);

  /// One optimizer step on one mini-batch. Precondition: it trains.
  UpdateResult update(std::span<const TokenSequence> batch, const LossFunction& loss,
                      const UpdateOptions& options);

  /// The first half of update: loss and metrics; gradients of this rank's sequences divided by dp
  /// accumulate in the optimizer's buffer.
  UpdateResult accumulate(std::span<const TokenSequence> batch, const LossFunction& loss,
                          const UpdateOptions& options);

  /// Runs `use` while the weights' tensors are whole on every rank (as they always are without
  /// FSDP), e.g. to save them. Collective.
  void with_whole_weights(const std::function<void()>& use);

  /// Between two uses of the model: what the options offload moves to host memory. Every function
  /// of this class brings it back first.
  void rest();
  /// Brings parameters back, for others who use them, and with `training` gradients; what follows
  /// on the current stream reads the last step's weights.
  void wake(bool training = false);
  /// Bytes that rest() frees on the device.
  std::int64_t resting_bytes() const {
    return parameters_parked_.bytes() + gradients_parked_.bytes();
  }

  /// The optimizer's state was written while the trainer was awake (Optimizer::state_restored);
  /// rests afterwards. Collective. Precondition: it trains.
  void state_restored(std::int64_t steps);

  Optimizer& optimizer() { return *optimizer_; }
  bool trains() const { return optimizer_ != nullptr; }

 private:
  void before_forward(std::int64_t layer, LayerRange chunk) override;
  void after_forward(std::int64_t layer, LayerRange chunk) override;
  void before_backward(std::int64_t layer, LayerRange chunk) override;
  void after_backward(std::int64_t layer, LayerRange chunk) override;
  bool shares_layers() const;
  void come_back(bool training);
  bool completes(std::int64_t layer) const;
  bool ends_model(std::int64_t layer) const;
  void begin_pass(bool training);
  void end_pass();
  torch::Tensor forward(const PackedMicroBatch& packed, const torch::Tensor& input,
                        StageOptions asked);
  PackedMicroBatch packed(std::span<const TokenSequence> batch,
                          std::span<const int> sequences) const;
  ContextSlice slice() const;
  std::int64_t row_multiple() const;
  TokenScores scored(const torch::Tensor& rows, const PackedMicroBatch& packed,
                     const ScoreOptions& options) const;

  using MicroBatches = std::vector<std::vector<int>>;
  enum class Wanted { log_probs, values, last_value };

  std::vector<MicroBatches> plan(std::span<const TokenSequence> batch, std::int64_t limit) const;
  PipelineShape shape(std::span<const TokenSequence> batch, const MicroBatches& mine) const;
  std::vector<TokenValues> infer(std::span<const TokenSequence> batch, Wanted wanted,
                                 const InferOptions& options, ExpertNotes* notes = nullptr);
  StageOutput differentiate(const torch::Tensor& hidden, const PackedMicroBatch& packed,
                            std::span<const int> sequences, const LossFunction& loss,
                            const UpdateOptions& options, LossParts& parts) const;

  Weights& weights_;
  const ParallelGroups& groups_;
  TrainerOptions options_;
  PipelineLinks links_;
  std::unique_ptr<TokenExchange> exchange_;        // nullptr: collectives
  std::unique_ptr<ShardedParameters> parameters_;  // FSDP
  bool training_pass_ = false;
  /// By layer: micro-batches of the pass whose backward has not begun.
  std::map<std::int64_t, int> backwards_left_;
  bool step_follows_ = false;  // the pass completes the step's gradients
  std::unique_ptr<Optimizer> optimizer_;
  Parked parameters_parked_, gradients_parked_;
  bool parameters_changed_ = true;  // since they last rested
  bool gradients_pending_ = false;  // accumulated and not stepped with
};

}  // namespace tessera
