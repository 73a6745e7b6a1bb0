#include "executor/train/balance.h"

namespace tessera {
namespace {

/// Every tensor-parallel rank's layers see other tokens.
bool cuts_tokens(const ParallelLayout& layout) { return layout.etp != layout.tp; }

}  // namespace

RouterLoads balance_loads(const Weights& weights, std::int64_t tokens, std::int64_t rows) {
  const ParallelLayout& layout = weights.layout;
  RouterLoads loads{.tokens = tokens, .first = 0, .choices = {}, .probabilities = {}};
  if (cuts_tokens(layout)) loads.first = weights.coord.tp * (rows / layout.tp);
  return loads;
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

}  // namespace tessera
