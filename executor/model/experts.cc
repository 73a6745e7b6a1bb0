#include "executor/model/experts.h"

#include <algorithm>
#include <tuple>

#include "cost_models/spec/families.h"
#include "cost_models/spec/split.h"
#include "executor/model/expert_products.h"
#include "executor/model/expert_rows.h"
#include "executor/model/layer_ops.h"

namespace tessera {
namespace {

using torch::Tensor;

struct Routing {
  Tensor weights;  // [tokens, k]
  Tensor chosen;   // int64 [tokens, k]
};

Routing route(const Weights& weights, const LayerRows& rows, const Tensor& x,
              const ExpertOptions& options) {
  const MoeSpec& moe = *weights.model().moe;
  const Tensor logits =
      with_z_loss(replicated_product(x, weights.tensor(rows.router)), options.z_loss);
  const Tensor asked = at::softmax(logits, -1, at::kFloat);
  const Tensor own = std::get<1>(asked.detach().topk(moe.experts_per_token, -1));
  // As Megatron-LM balances: what the router asks for, whatever is replayed.
  const Tensor probabilities = with_balance(asked, own, options.balance);
  const Tensor chosen = replayed_choice(own, options.replay);
  Tensor scores = probabilities.gather(1, chosen);
  if (moe.normalised) scores = scores / scores.sum(-1, /*keepdim=*/true);
  // Mixtral's class leaves them in fp32.
  const bool wide = facts_of(weights.model().family).modules.wide_scores;
  if (!wide) scores = scores.to(x.scalar_type());
  return {scores, chosen};
}

/// This rank's experts of the layer, in the order of the model.
ExpertWeights held_experts(const Weights& weights, const LayerRows& rows) {
  ExpertWeights held;
  for (std::size_t expert = 0; expert < rows.expert_downs.size(); ++expert) {
    if (!weights.holds(rows.expert_downs[expert])) continue;
    held.gate_up.push_back(weights.tensor(rows.expert_gates[expert]));
    held.gate_up.push_back(weights.tensor(rows.expert_ups[expert]));
    held.down.push_back(weights.tensor(rows.expert_downs[expert]));
  }
  return held;
}

/// x with zeros below it, `count` rows in all.
Tensor filled_up(const Tensor& x, std::int64_t count) {
  return x.size(0) == count ? x : at::constant_pad_nd(x, {0, 0, 0, count - x.size(0)});
}

/// Of every row of x, of which every rank of the group brings as many, after they were filled up to
/// `count`: sums over experts.
Tensor experts_of_even(const Weights& weights, const LayerRows& rows, const Tensor& x,
                       const ExpertOptions& options, std::int64_t count) {
  Communicator& group = *options.group;
  const std::int64_t experts = weights.model().moe->experts;
  const Interval own = split(experts, group.size(), group.rank());
  const Routing mine = route(weights, rows, x, options);
  const Tensor all = all_rows(filled_up(x, count), &group);
  const Tensor scores = all_rows(filled_up(mine.weights, count), &group);
  const Tensor chosen = all_rows(filled_up(mine.chosen, count), &group) - own.lo;
  // Choices of others' experts come last, behind the rows that are multiplied.
  const Tensor local =
      at::where((chosen >= 0).logical_and(chosen < own.size()), chosen, own.size());
  const SortedChoices choices = sort_choices(local, own.size() + 1);
  const ExpertRows counted = expert_rows(choices.counts.narrow(0, 0, own.size()));
  const Tensor done = expert_mlp(spread(all, choices), counted, held_experts(weights, rows));
  const Tensor made = at::arange(done.size(0), counted.ends.options()) < counted.ends.select(0, -1);
  const Tensor zero = torch::zeros({}, done.options());
  const Tensor sums = combine(at::where(made.unsqueeze(1), done, zero), scores, choices);
  return summed_own_rows(sums, &group).narrow(0, 0, x.size(0));
}

/// Of every row of x: sums over experts, partial where experts are cut.
Tensor experts_of(const Weights& weights, const LayerRows& rows, const Tensor& x,
                  const ExpertOptions& options) {
  if (options.even) return experts_of_even(weights, rows, x, options, x.size(0));
  const Routing routing = route(weights, rows, x, options);
  const SortedChoices choices = sort_choices(routing.chosen, weights.model().moe->experts);
  const ExpertWeights held = held_experts(weights, rows);
  const Tensor sorted = spread(x, choices);
  if (options.group == nullptr) {
    return combine(expert_mlp(sorted, expert_rows(choices.counts), held, options.recompute_product),
                   routing.weights, choices);
  }
  const Dispatch dispatch = plan_dispatch(choices, *options.group);
  const Tensor done =
      expert_mlp(send_to_experts(sorted, dispatch), dispatch.rows, held, options.recompute_product);
  return combine(send_back(done, dispatch), routing.weights, choices);
}

/// Of rows that all tensor-parallel ranks have, where experts are cut into fewer parts: those that
/// cut the same ones bring a share of the rows. Whole sums of all rows, without gradient.
Tensor experts_of_shares(const Weights& weights, const LayerRows& rows, const Tensor& x,
                         const TensorParallel& tp, const ExpertOptions& options) {
  const int parts = weights.layout.etp;
  const std::int64_t count = x.size(0), shares = tp.group->size() / parts;
  const std::int64_t most = (count + shares - 1) / shares;
  const std::int64_t first = std::min(count, most * (tp.group->rank() / parts));
  const std::int64_t own = std::min(most, count - first);
  ExpertOptions share = options;
  share.replay = options.replay.of_rows(first, own);
  const Tensor part = x.narrow(0, first, own);
  const Tensor done = options.even ? experts_of_even(weights, rows, part, share, most)
                                   : experts_of(weights, rows, part, share);
  if (count == 0) return done;
  if (parts == 1) return all_rows(filled_up(done, most), tp.group).narrow(0, 0, count);
  Tensor sums = at::constant_pad_nd(done, {0, 0, first, count - first - own});
  all_reduce_(sums, tp.group);
  return sums;
}

/// The expert that every token uses, through a gate where it has one.
Tensor shared_expert(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                     const TensorParallel& tp, bool recompute_product) {
  const Projections mlp =
      column_parallel(normed, {weights.tensor(rows.gate), weights.tensor(rows.up), {}}, {}, tp);
  const Tensor out =
      gated_row_parallel(mlp.a, mlp.b, weights.tensor(rows.down), {}, tp, recompute_product);
  if (rows.shared_gate < 0) return out;
  return out * replicated_product(normed, weights.tensor(rows.shared_gate)).sigmoid();
}

}  // namespace

Tensor routed_mlp(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                  const TensorParallel& tp, const ExpertOptions& options) {
  const ParallelLayout& layout = weights.layout;
  const auto routed = [&] {
    const bool alike = layout.etp == layout.tp;
    if (!alike && !tp.sequence) return experts_of_shares(weights, rows, normed, tp, options);
    // Those who cut the same experts do the rows of all of them.
    const TensorParallel parts = alike ? tp : TensorParallel(options.parts, /*sequence=*/true);
    const Tensor x = enter_parallel(normed, parts);
    ExpertOptions own = options;
    own.replay = options.replay.of_rows(weights.coord.tp / layout.etp * x.size(0), x.size(0));
    return leave_parallel(experts_of(weights, rows, x, own), parts);
  };
  const Tensor out = routed();
  if (rows.down < 0) return out;
  return out + shared_expert(weights, rows, normed, tp, options.recompute_product);
}

bool grouped_experts(const Weights& weights) {
  return std::all_of(weights.rows.layers.begin(), weights.rows.layers.end(),
                     [&](const LayerRows& rows) {
                       return !rows.routed() || grouped(held_experts(weights, rows));
                     });
}

}  // namespace tessera
