#include "executor/train/balance.h"

#include "executor/model/decoder.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {

RouterLosses::RouterLosses(const Weights& weights, const ParallelGroups& groups,
                           const RouterLossOptions& options)
    : weights_(weights),
      groups_(groups),
      options_(options),
      layers_(routed_layers(weights, {0, weights.model().layers})) {
  const auto fp32 = torch::TensorOptions().device(weights.device());
  if (options.balance != 0) balance_ = torch::zeros({1}, fp32);
  if (options.z != 0) squares_ = torch::zeros({1}, fp32);
}

/// Tensor-parallel ranks that cut different experts see other tokens.
bool RouterLosses::cuts_tokens() const { return weights_.layout.etp != weights_.layout.tp; }

/// Ranks whose routers see the same tokens, those that cut the same experts: their equal gradients
/// are added up.
int RouterLosses::alike() const { return weights_.layout.etp; }

/// The first of the held rows that this rank's routers see.
std::int64_t RouterLosses::first_row(const PackedMicroBatch& packed) const {
  const std::int64_t of_rank = packed.tokens.tokens() / weights_.layout.tp;
  const std::int64_t block = weights_.coord.tp / alike();
  return block * alike() * of_rank;
}

std::int64_t RouterLosses::sums() const {
  return options_.balance != 0 ? weights_.model().moe->experts : 0;
}

RouterBalance RouterLosses::balance_of(const PackedMicroBatch& packed, std::int64_t tokens,
                                       int chunk) const {
  if (options_.balance == 0) return {};
  const std::int64_t experts = weights_.model().moe->experts;
  const double share = static_cast<double>(tokens) / static_cast<double>(options_.batch_tokens);
  const auto rows = static_cast<double>(tokens * layers_);
  const double of_loss = static_cast<double>(experts) / (rows * rows);
  const auto fp32 = balance_.options();
  return {.tokens = packed.held,
          .first = first_row(packed),
          .slope = tokens == 0 ? 0 : options_.balance * share * of_loss / alike(),
          .choices =
              torch::zeros({routed_layers(weights_, chunk_layers(weights_, chunk)), experts}, fp32),
          .all_choices = torch::zeros({experts}, fp32),
          .value = balance_};
}

torch::Tensor RouterLosses::choices_of(const RouterBalance& balance) const {
  if (!balance.choices.defined()) return {};
  torch::Tensor all = balance.all_choices;
  all.copy_(balance.choices.sum(0));
  if (cuts_tokens()) {
    if (weights_.coord.tp % alike() != 0) all.zero_();  // a neighbour tells of the same tokens
    all_reduce_(all, groups_.tp.get());
  }
  all_reduce_(all, groups_.cp.get());
  return all;
}

RouterZLoss RouterLosses::z_loss_of(const PackedMicroBatch& packed) const {
  if (options_.z == 0) return {};
  return {.tokens = packed.held,
          .first = first_row(packed),
          .slope = options_.z / (static_cast<double>(options_.batch_tokens) * alike()),
          .squares = squares_};
}

void RouterLosses::add_to(UpdateResult& result) const {
  const auto of_all = [&](torch::Tensor sum) {
    all_reduce_(sum, groups_.role.get());
    const auto value = sum.item<double>();
    result.loss += value;
    return value;
  };
  if (options_.balance != 0) {
    result.metrics["router_aux_loss"] = of_all(balance_.clone()) / options_.balance;
  }
  if (options_.z != 0) {
    const double slope = options_.z / (static_cast<double>(options_.batch_tokens) * alike());
    result.metrics["router_z_loss"] =
        of_all(squares_ * slope) / (options_.z * static_cast<double>(layers_));
  }
}

}  // namespace tessera
