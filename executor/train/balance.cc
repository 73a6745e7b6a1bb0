#include "executor/train/balance.h"

namespace tessera {
namespace {

/// Every tensor-parallel rank's layers see other tokens.
bool cuts_tokens(const ParallelLayout& layout) { return layout.etp != layout.tp; }

/// The first of the rows that this rank's routers see.
std::int64_t first_row(const Weights& weights, std::int64_t rows) {
  const ParallelLayout& layout = weights.layout;
  return cuts_tokens(layout) ? weights.coord.tp * (rows / layout.tp) : 0;
}

}  // namespace

RouterLoads balance_loads(const Weights& weights, std::int64_t tokens, std::int64_t rows) {
  return {.tokens = tokens, .first = first_row(weights, rows), .choices = {}, .probabilities = {}};
}

void add_balance(const Weights& weights, const ParallelGroups& groups, const RouterLoads& loads,
                 double coefficient, double share, StageOutput& output, LossParts& parts) {
  const bool cut = cuts_tokens(weights.layout);
  const torch::Tensor loss = balance_loss(loads, cut ? groups.tp.get() : nullptr);
  torch::Tensor whole = loss.detach().clone();
  if (cut) all_reduce_(whole, groups.tp.get());
  const auto value = share * whole.item<double>();
  parts.value += coefficient * value;
  parts.sums["router_aux_loss"] += value;
  // Where all ranks see all tokens their equal gradients are added up.
  const double times = cut ? 1.0 : weights.layout.tp;
  output.roots.push_back(loss);
  output.gradients.push_back(
      torch::full_like(whole, coefficient * share / (groups.dp_size * times)));
}

RouterZLoss z_loss_of(const Weights& weights, double coefficient, std::int64_t batch_tokens) {
  if (coefficient == 0) return {};
  // Where all tensor-parallel ranks see all tokens their equal gradients are added up.
  const double times = cuts_tokens(weights.layout) ? 1.0 : weights.layout.tp;
  return {.slope = coefficient / (static_cast<double>(batch_tokens) * times),
          .squares = torch::zeros({1}, torch::TensorOptions().device(weights.device()))};
}

RouterZLoss on_rows(const RouterZLoss& loss, const Weights& weights,
                    const PackedMicroBatch& packed) {
  RouterZLoss own = loss;
  own.tokens = packed.held;
  own.first = first_row(weights, packed.tokens.tokens());
  return own;
}

void add_z_loss(const Weights& weights, const ParallelGroups& groups, const RouterZLoss& loss,
                double coefficient, UpdateResult& result) {
  if (coefficient == 0) return;
  torch::Tensor sum = loss.squares * loss.slope;
  all_reduce_(sum, groups.role.get());
  const auto value = sum.item<double>();
  result.loss += value;
  result.metrics["router_z_loss"] =
      value /
      (coefficient * static_cast<double>(routed_layers(weights, {0, weights.model().layers})));
}

}  // namespace tessera
