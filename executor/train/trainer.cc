#include "executor/train/trainer.h"

#include <algorithm>
#include <string>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/context_parallel.h"
#include "cost_models/spec/expert_parallel.h"
#include "executor/batching/micro_batches.h"
#include "executor/model/scores.h"
#include "executor/tensor/to_device.h"
#include "executor/train/balance.h"
#include "executor/train/share_results.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {
namespace {

void refuse_unsupported(const ModelSpec& model, const ParallelLayout& layout) {
  std::string all;
  for (const std::string& what :
       {model_refusal(model), context_refusal(model, layout), expert_refusal(model, layout)}) {
    if (!what.empty()) all += (all.empty() ? "" : ", ") + what;
  }
  if (!all.empty()) throw Error(ExitCode::infeasible, "training does not support " + all);
}

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::span<const double> span_of(const torch::Tensor& values) {
  return {values.const_data_ptr<double>(), static_cast<std::size_t>(values.numel())};
}

std::int64_t tokens_of(std::span<const TokenSequence> batch, std::span<const int> sequences) {
  std::int64_t tokens = 0;
  for (const int s : sequences) tokens += batch[index(s)].tokens();
  return tokens;
}

/// The rank's own part of the whole micro-batch's gradient.
torch::Tensor seed(const std::vector<double>& gradient, const std::vector<int>& owners, int rank,
                   double scale, const torch::Tensor& like) {
  TESSERA_CHECK(gradient.size() == owners.size());
  std::vector<double> mine;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == rank) mine.push_back(gradient[i] * scale);
  }
  const torch::Tensor host = torch::tensor(at::ArrayRef<double>(mine), torch::kFloat64);
  TESSERA_CHECK(host.numel() == like.numel());
  return to_device(host.to(like.scalar_type()), like.device());
}

}  // namespace

Trainer::Trainer(Weights& weights, const ParallelGroups& groups,
                 const std::optional<AdamWOptions>& optimizer, const TrainerOptions& options)
    : weights_(weights), groups_(groups), options_(options) {
  refuse_unsupported(weights.model(), weights.layout);
  if (options.tensor_host != nullptr && groups.tp != nullptr && weights.layout.sequence_parallel) {
    exchange_ = make_token_exchange(*options.tensor_host, weights.device());
  }
  options_.context.group = groups.cp.get();
  // Memory that peers have mapped cannot be given back.
  if (options_.offload_parameters) options_.sharding.host_group = nullptr;
  if (options_.offload_gradients) options_.sharding.read_gradients = false;
  links_ = make_links(groups.pp.get(), weights.layout.vpp);
  if (weights.layout.dp_shard > 1)
    parameters_ = std::make_unique<ShardedParameters>(weights, groups, options_.sharding);
  if (optimizer && options.adapters != nullptr)
    optimizer_ = std::make_unique<Optimizer>(*options.adapters, groups, *optimizer);
  else if (optimizer)
    optimizer_ = std::make_unique<Optimizer>(weights, groups, *optimizer, options_.sharding,
                                             parameters_.get());
  if (options_.offload_parameters) {
    parameters_parked_.add(weights.storage);
    if (optimizer_) optimizer_->park_in(parameters_parked_);
  }
}

bool Trainer::shares_layers() const {
  return parameters_ != nullptr || (training_pass_ && optimizer_->sharded().reduces());
}

/// Layers are gathered in the order of their use, always one ahead of the computation.
void Trainer::before_forward(std::int64_t layer, LayerRange chunk) {
  if (optimizer_ != nullptr) optimizer_->await_weights(optimizer_->map().of_layer(layer));
  if (parameters_ == nullptr) return;
  const ShardMap& map = parameters_->map();
  parameters_->await(map.of_layer(layer));
  if (layer + 1 < chunk.last) {
    parameters_->gather(map.of_layer(layer + 1));
  } else if (ends_model(layer) && map.back() != nullptr) {
    parameters_->gather(*map.back());
  }
}

void Trainer::after_forward(std::int64_t layer, LayerRange) {
  const bool last = ends_model(layer);
  if (optimizer_ != nullptr && last && optimizer_->map().back() != nullptr) {
    optimizer_->await_weights(*optimizer_->map().back());
  }
  if (parameters_ == nullptr) return;
  const ShardMap& map = parameters_->map();
  const bool keep = training_pass_ && (last || !options_.sharding.reshard_after_forward);
  if (!keep) parameters_->release(map.of_layer(layer));
  if (last && map.back() != nullptr) parameters_->await(*map.back());
}

void Trainer::before_backward(std::int64_t layer, LayerRange chunk) {
  if (parameters_ != nullptr) {
    const ShardMap& map = parameters_->map();
    parameters_->await(map.of_layer(layer));
    if (layer > chunk.first) parameters_->gather(map.of_layer(layer - 1));
  }
  const ShardMap& map = optimizer_->map();
  --backwards_left_.at(layer);
  // The last micro-batch has passed the head.
  if (completes(layer) && ends_model(layer) && map.back() != nullptr) {
    optimizer_->sharded().end_bucket(*map.back());
  }
  optimizer_->sharded().begin_layer(map.of_layer(layer));
}

/// A chunk's first layer stays: the next micro-batch begins with it.
void Trainer::after_backward(std::int64_t layer, LayerRange chunk) {
  if (parameters_ != nullptr && layer != chunk.first) {
    parameters_->release(parameters_->map().of_layer(layer));
  }
  ShardedGradients& gradients = optimizer_->sharded();
  const ShardBucket& bucket = optimizer_->map().of_layer(layer);
  if (gradients.by_layer()) {
    gradients.end_layer(bucket);
  } else if (completes(layer)) {
    gradients.end_bucket(bucket);
  }
}

/// The running backward pass of the layer is the last one before the step.
bool Trainer::completes(std::int64_t layer) const {
  return step_follows_ && backwards_left_.at(layer) == 0;
}

void Trainer::rest() {
  if (!options_.offload_parameters && !options_.offload_gradients) return;
  if (weights_.device().is_cuda()) torch::cuda::synchronize(weights_.device().index());
  if (options_.offload_parameters) {
    if (parameters_ != nullptr) parameters_->release_idle();
    parameters_parked_.leave(/*keep=*/true, /*unchanged=*/!parameters_changed_);
    parameters_changed_ = gradients_pending_;  // a step may come while they are back
  }
  if (options_.offload_gradients && trains() && !gradients_parked_.away()) {
    optimizer_->sharded().park_in(gradients_parked_);
    gradients_parked_.leave(/*keep=*/gradients_pending_);
  }
}

void Trainer::state_restored(std::int64_t steps) {
  optimizer_->state_restored(steps);
  parameters_changed_ = true;
  rest();
}

void Trainer::wake(bool training) {
  come_back(training);
  if (trains()) optimizer_->await_weights();
}

void Trainer::come_back(bool training) {
  parameters_parked_.come_back();
  if (training) gradients_parked_.come_back();
}

/// Weights that are still on their way are awaited layer by layer, where layers are told apart.
void Trainer::begin_pass(bool training) {
  training_pass_ = training;
  if (shares_layers()) {
    come_back(training);
    if (trains()) optimizer_->await_weights(optimizer_->map().front());
  } else {
    wake(training);
  }
  if (parameters_ == nullptr) return;
  const ShardMap& map = parameters_->map();
  parameters_->gather(map.front());
  parameters_->gather(map.of_layer(weights_.layout.stages[index(weights_.coord.pp)].first));
  parameters_->await(map.front());
}

bool Trainer::ends_model(std::int64_t layer) const { return layer + 1 == weights_.model().layers; }

void Trainer::end_pass() {
  if (parameters_ == nullptr) return;
  for (const ShardBucket& bucket : parameters_->map().buckets) parameters_->release(bucket);
}

void Trainer::with_whole_weights(const std::function<void()>& use) {
  wake();
  if (parameters_ != nullptr)
    for (const ShardBucket& bucket : parameters_->map().buckets) parameters_->await(bucket);
  use();
  end_pass();
}

/// `asked`: the chunk and what its routers are asked for.
torch::Tensor Trainer::forward(const PackedMicroBatch& packed, const torch::Tensor& input,
                               StageOptions asked) {
  if (training_pass_) asked.recompute = options_.recompute;
  asked.access = shares_layers() ? this : nullptr;
  asked.exchange = exchange_.get();
  asked.context = options_.context;
  const torch::Tensor hidden = stage_forward(weights_, groups_, packed.tokens, input, asked);
  if (!is_last_chunk(weights_, asked.chunk)) return hidden;
  return gather_tokens(hidden, tensor_parallel(weights_, groups_));
}

PackedMicroBatch Trainer::packed(std::span<const TokenSequence> batch,
                                 std::span<const int> sequences) const {
  return pack_micro_batch(batch, sequences, weights_.device(), row_multiple(), slice());
}

ContextSlice Trainer::slice() const {
  return {groups_.cp_size, groups_.coord.cp, weights_.layout.ulysses};
}

std::int64_t Trainer::row_multiple() const {
  return weights_.layout.sequence_parallel ? groups_.tp_size : 1;
}

std::vector<Trainer::MicroBatches> Trainer::plan(std::span<const TokenSequence> batch,
                                                 std::int64_t limit) const {
  std::vector<std::int64_t> lengths;
  for (const TokenSequence& sequence : batch) lengths.push_back(sequence.tokens());
  auto plans = plan_micro_batches(lengths, {groups_.dp_size, limit});
  // Where layers or experts are shared every replica takes part in every micro-batch, with nothing
  // if need be.
  if (weights_.layout.zero >= 1 || weights_.layout.ep > 1) return plans;
  for (MicroBatches& replica : plans)
    std::erase_if(replica, [](const std::vector<int>& list) { return list.empty(); });
  return plans;
}

PipelineShape Trainer::shape(std::span<const TokenSequence> batch, const MicroBatches& mine) const {
  PipelineShape shape;
  shape.width = weights_.model().hidden;
  shape.options = weights_.storage.options().requires_grad(false);
  for (const std::vector<int>& sequences : mine) {
    std::vector<std::int64_t> lengths;
    for (const int s : sequences) lengths.push_back(batch[index(s)].tokens());
    shape.tokens.push_back(context_rows(lengths, slice(), row_multiple()).rows / row_multiple());
  }
  return shape;
}

UpdateResult Trainer::update(std::span<const TokenSequence> batch, const LossFunction& loss,
                             const UpdateOptions& options) {
  TESSERA_CHECK(trains());
  come_back(/*training=*/true);
  optimizer_->zero_gradients();
  UpdateResult result = accumulate(batch, loss, options);
  const StepResult step = optimizer_->step(options.learning_rate, options.written);
  gradients_pending_ = false;
  result.grad_norm = step.grad_norm;
  result.applied = step.applied;
  return result;
}

UpdateResult Trainer::accumulate(std::span<const TokenSequence> batch, const LossFunction& loss,
                                 const UpdateOptions& options) {
  TESSERA_CHECK(trains());
  const std::vector<MicroBatches> plans = plan(batch, options.token_limit);
  const MicroBatches& mine = plans[index(groups_.dp_rank)];
  LossParts parts;
  std::int64_t batch_tokens = 0;
  for (const TokenSequence& sequence : batch) batch_tokens += sequence.tokens();
  const RouterLosses routers(weights_, groups_,
                             {.balance = options.router_aux_loss_coef,
                              .z = options.router_z_loss_coef,
                              .batch_tokens = batch_tokens});
  const torch::Tensor compared = room_to_compare(batch, weights_.device());
  for (const ShardBucket& bucket : optimizer_->map().buckets) {
    backwards_left_[bucket.layer] = static_cast<int>(mine.size());
  }
  step_follows_ = options.last;
  begin_pass(/*training=*/true);
  parameters_changed_ = gradients_pending_ = true;  // a step will follow
  const auto stage = [&](int m, int chunk, const torch::Tensor& input) -> StageOutput {
    const PackedMicroBatch packed = this->packed(batch, mine[index(m)]);
    const std::vector<int>& sequences = mine[index(m)];
    StageOptions asked{.chunk = chunk,
                       .z_loss = routers.z_loss_of(packed),
                       .balance = routers.balance_of(packed, tokens_of(batch, sequences), chunk),
                       .replay = replay_of(weights_, chunk, batch, sequences, packed, slice())};
    asked.replay.compared = compared;
    const torch::Tensor hidden = forward(packed, input, asked);
    StageOutput output{{hidden}, {}};
    if (is_last_chunk(weights_, chunk) && sequences.empty()) {
      output.gradients.push_back(torch::zeros_like(hidden));
    } else if (is_last_chunk(weights_, chunk)) {
      output = differentiate(hidden, packed, sequences, loss, options, parts);
    }
    output.sums = routers.choices_of(asked.balance);
    return output;
  };
  PipelineShape shape = this->shape(batch, mine);
  shape.sums = routers.sums();
  train_pipeline(links_, shape, stage);
  end_pass();
  if (step_follows_) optimizer_->sharded().end_bucket(optimizer_->map().front());
  UpdateResult result =
      mean_over_replicas(share_parts(groups_, parts, weights_.device()), groups_.dp_size);
  routers.add_to(result);
  add_mismatch(groups_, compared, result);
  return result;
}

/// Scores the rows before this rank's response tokens; a context-parallel rank may have none.
TokenScores Trainer::scored(const torch::Tensor& rows, const PackedMicroBatch& packed,
                            const ScoreOptions& options) const {
  if (weights_.model().head == ModelHead::value) return {token_values(weights_, rows), {}};
  if (rows.size(0) > 0) return score_tokens(weights_, groups_, rows, packed.targets, options);
  const torch::Tensor none = torch::empty({0}, rows.options().dtype(torch::kFloat32));
  return {none, options.entropy ? none : torch::Tensor(),
          options.sum_pi_squared ? none : torch::Tensor()};
}

/// Scores, the loss on the host, and its gradients as seeds of the backward pass. Gradients are
/// divided by the number of replicas here, so that their sum over replicas is the mean.
StageOutput Trainer::differentiate(const torch::Tensor& hidden, const PackedMicroBatch& packed,
                                   std::span<const int> sequences, const LossFunction& loss,
                                   const UpdateOptions& options, LossParts& parts) const {
  const TokenScores scores =
      scored(hidden.index_select(0, packed.rows), packed,
             {.temperature = options.temperature, .entropy = options.entropy});
  const auto on_host = [&](const torch::Tensor& values) {
    return whole_values(groups_, values.detach(), packed.row_owners)
        .to(torch::kCPU, torch::kFloat64);
  };
  const torch::Tensor host_scores = on_host(scores.log_prob);
  torch::Tensor host_entropy = torch::empty({0}, torch::kFloat64);
  if (scores.entropy.defined()) host_entropy = on_host(scores.entropy);
  const LossGradient gradient = loss(sequences, span_of(host_scores), span_of(host_entropy));
  parts.add(gradient);

  const double scale = 1.0 / groups_.dp_size;
  const auto own = [&](const std::vector<double>& all, const torch::Tensor& like) {
    return seed(all, packed.row_owners, groups_.coord.cp, scale, like);
  };
  // None of the response tokens: nothing to differentiate by, but the layers' collectives go on.
  if (packed.rows.size(0) == 0) return {{hidden}, {torch::zeros_like(hidden)}};
  StageOutput output{{scores.log_prob}, {own(gradient.score_gradient, scores.log_prob)}};
  if (!gradient.entropy_gradient.empty()) {
    output.roots.push_back(scores.entropy);
    output.gradients.push_back(own(gradient.entropy_gradient, scores.entropy));
  }
  return output;
}

}  // namespace tessera
