#include "executor/model/scores.h"

#include <algorithm>

#include "cost_models/documents/check.h"
#include "executor/comm/groups.h"
#include "executor/model/ordered_ops.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/gradient_products.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Column of each target in this rank's vocabulary rows, and which targets lie in them.
struct LocalTargets {
  Tensor column, held;  // int64 (0 where not held), bool; [tokens]
};

LocalTargets local_targets(const Tensor& targets, Interval vocab) {
  const Tensor held = (targets >= vocab.lo).logical_and_(targets < vocab.hi);
  return {(targets - vocab.lo).masked_fill_(held.logical_not(), 0), held};
}

/// In fp32, whatever the inputs are: rounded to 16 bits a logit of 10 is wrong by 0.03.
Tensor wide_logits(const Tensor& hidden, const Tensor& head) {
  if (hidden.scalar_type() == at::kFloat) return at::mm(hidden, head.t());
  if (hidden.is_cuda()) return at::mm(hidden, head.t(), at::kFloat);
  return at::mm(hidden.to(at::kFloat), head.t().to(at::kFloat));
}

Tensor scaled_logits(const Tensor& hidden, const Tensor& head, double temperature) {
  Tensor logits = wide_logits(hidden, head);
  if (temperature != 1.0) logits.div_(temperature);
  return logits;
}

struct ChunkScores {
  Tensor log_prob, entropy, log_normalizer;
};

ChunkScores score_chunk(Tensor logits, const LocalTargets& targets, Communicator* tp,
                        bool entropy) {
  Tensor highest = logits.amax(1);
  all_reduce_(highest, tp, ReduceOp::max);
  const Tensor shifted = logits.sub_(highest.unsqueeze(1));
  const Tensor weight = shifted.exp();
  Tensor sums = torch::empty({entropy ? 3 : 2, logits.size(0)}, logits.options());
  sums[0].copy_(weight.sum(1));
  sums[1].copy_(shifted.gather(1, targets.column.unsqueeze(1)).squeeze(1).mul_(targets.held));
  if (entropy) sums[2].copy_((weight * shifted).sum(1));
  all_reduce_(sums, tp);
  const Tensor log_sum = sums[0].log();
  ChunkScores scores{.log_prob = sums[1] - log_sum};
  if (entropy) scores.entropy = log_sum - sums[2] / sums[0];
  scores.log_normalizer = highest + log_sum;
  return scores;
}

/// d(log_prob)/d(logit_j) = [j is the target] - p_j;  d(entropy)/d(logit_j) = -p_j (log p_j + H).
Tensor logit_gradient(const Tensor& probability, const LocalTargets& targets, const Tensor& g_score,
                      const Tensor& g_entropy, const Tensor& entropy) {
  Tensor pull = g_score;
  if (g_entropy.defined()) pull = pull + g_entropy * entropy;
  Tensor gradient = probability * pull.neg().unsqueeze(1);
  if (g_entropy.defined()) {
    gradient.sub_(at::xlogy(probability, probability).mul_(g_entropy.unsqueeze(1)));
  }
  return gradient.scatter_add_(1, targets.column.unsqueeze(1),
                               (g_score * targets.held).unsqueeze(1));
}

/// Scores a chunk by the fused kernels, which read the logits once.
ChunkScores score_chunk_fused(const Tensor& logits, const LocalTargets& targets, Communicator* tp,
                              double temperature, bool entropy) {
  const Tensor column = targets.column.masked_fill(targets.held.logical_not(), -1);
  const fused::VocabularySums own = fused::vocabulary_sums(logits, column, temperature);
  Tensor highest = own.highest.clone();
  all_reduce_(highest, tp, ReduceOp::max);
  // Each rank's sums are relative to its own highest logit: moved to the common one.
  const Tensor down = own.highest - highest, factor = down.exp();
  Tensor sums = torch::stack({own.sum * factor, (own.picked - highest) * targets.held,
                              (own.weighted + own.sum * down) * factor});
  all_reduce_(sums, tp);
  const Tensor log_sum = sums[0].log();
  ChunkScores scores{.log_prob = sums[1] - log_sum};
  if (entropy) scores.entropy = log_sum - sums[2] / sums[0];
  scores.log_normalizer = highest + log_sum;
  return scores;
}

struct ScoreTokens : torch::autograd::Function<ScoreTokens> {
  static variable_list forward(AutogradContext* context, const Tensor& hidden, const Tensor& head,
                               const Tensor& targets, std::int64_t vocab_lo, std::int64_t vocab_hi,
                               Communicator* tp, double temperature, bool entropy,
                               std::int64_t chunk_rows) {
    const LocalTargets local = local_targets(targets, {vocab_lo, vocab_hi});
    const std::int64_t rows = hidden.size(0);
    std::vector<Tensor> log_probs, entropies, normalizers;
    for (std::int64_t first = 0; first < rows; first += chunk_rows) {
      const std::int64_t count = std::min(chunk_rows, rows - first);
      const LocalTargets chunk{local.column.narrow(0, first, count),
                               local.held.narrow(0, first, count)};
      const Tensor part = hidden.narrow(0, first, count);
      ChunkScores scores =
          fused::usable(hidden)
              ? score_chunk_fused(wide_logits(part, head), chunk, tp, temperature, entropy)
              : score_chunk(scaled_logits(part, head, temperature), chunk, tp, entropy);
      log_probs.push_back(scores.log_prob);
      if (entropy) entropies.push_back(scores.entropy);
      normalizers.push_back(scores.log_normalizer);
    }
    variable_list out{torch::cat(log_probs)};
    if (entropy) out.push_back(torch::cat(entropies));
    context->save_for_backward({hidden, head, local.column, local.held, torch::cat(normalizers),
                                entropy ? out[1] : Tensor()});
    context->saved_data["tp"] = reinterpret_cast<std::int64_t>(tp);
    context->saved_data["temperature"] = temperature;
    context->saved_data["chunk_rows"] = chunk_rows;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &hidden = saved[0], &head = saved[1], &normalizer = saved[4], &entropy = saved[5];
    const LocalTargets local{saved[2], saved[3]};
    auto* tp = reinterpret_cast<Communicator*>(context->saved_data["tp"].toInt());
    const double temperature = context->saved_data["temperature"].toDouble();
    const std::int64_t rows = hidden.size(0);
    const std::int64_t chunk_rows = context->saved_data["chunk_rows"].toInt();
    const Tensor g_score = gradients[0].defined() ? gradients[0] : torch::zeros_like(normalizer);
    const Tensor g_entropy = gradients.size() > 1 ? gradients[1] : Tensor();
    const bool trained = context->needs_input_grad(1);
    const auto buffer = gradient_buffer(head);
    Tensor d_hidden = torch::empty_like(hidden);
    Tensor d_head = buffer ? *buffer : trained ? torch::zeros_like(head) : Tensor();
    for (std::int64_t first = 0; first < rows; first += chunk_rows) {
      const std::int64_t count = std::min(chunk_rows, rows - first);
      const auto part = [&](const Tensor& x) {
        return x.defined() ? x.narrow(0, first, count) : x;
      };
      const LocalTargets targets{part(local.column), part(local.held)};
      Tensor gradient;
      if (fused::usable(hidden)) {
        gradient = wide_logits(part(hidden), head);
        const Tensor column = targets.column.masked_fill(targets.held.logical_not(), -1);
        fused::vocabulary_gradient_(gradient, column, temperature, part(normalizer).contiguous(),
                                    part(entropy), part(g_score).contiguous(),
                                    g_entropy.defined() ? part(g_entropy).contiguous() : g_entropy);
        gradient = gradient.to(hidden.scalar_type());
      } else {
        const Tensor probability = scaled_logits(part(hidden), head, temperature)
                                       .sub_(part(normalizer).unsqueeze(1))
                                       .exp_();
        gradient =
            logit_gradient(probability, targets, part(g_score), part(g_entropy), part(entropy));
        if (temperature != 1.0) gradient.div_(temperature);
        gradient = gradient.to(hidden.scalar_type());
      }
      part(d_hidden).copy_(at::mm(gradient, head));
      if (buffer) {
        add_product(d_head, gradient.t(), part(hidden));
      } else if (trained) {
        at::addmm_out(d_head, d_head, gradient.t(), part(hidden));
      }
    }
    all_reduce_(d_hidden, tp);
    variable_list result(9);
    result[0] = d_hidden;
    if (!buffer) result[1] = d_head;
    return result;
  }
};

/// Sum over the vocabulary of the squared probabilities of each row; fp32 [tokens].
Tensor squared_probabilities(const Tensor& hidden, const Tensor& head, Communicator* tp,
                             const ScoreOptions& options) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> parts{torch::empty({0}, hidden.options().dtype(at::kFloat))};
  for (std::int64_t first = 0; first < hidden.size(0); first += options.chunk_rows) {
    const std::int64_t count = std::min(options.chunk_rows, hidden.size(0) - first);
    Tensor weight = scaled_logits(hidden.narrow(0, first, count), head, options.temperature);
    Tensor highest = weight.amax(1);
    all_reduce_(highest, tp, ReduceOp::max);
    weight.sub_(highest.unsqueeze(1)).exp_();
    Tensor sums = torch::stack({weight.sum(1), weight.square_().sum(1)});
    all_reduce_(sums, tp);
    parts.push_back(sums[1] / sums[0].square());
  }
  return torch::cat(parts);
}

/// Scores of rows in the fixed order, from whole logits.
TokenScores score_in_order(const Weights& weights, const ParallelGroups& groups,
                           const Tensor& hidden, const Tensor& targets,
                           const ScoreOptions& options) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> log_probs, entropies, squares;
  for (std::int64_t first = 0; first < hidden.size(0); first += options.chunk_rows) {
    const std::int64_t count = std::min(options.chunk_rows, hidden.size(0) - first);
    const Tensor chunk = targets.narrow(0, first, count);
    Tensor logits = full_logits(weights, groups, hidden.narrow(0, first, count), SumOrder::fixed);
    log_probs.push_back(drawn_log_probs(logits, chunk, options.temperature));
    if (!options.entropy && !options.sum_pi_squared) continue;
    if (options.temperature != 1.0) logits.div_(options.temperature);
    const Tensor probability = options.sum_pi_squared ? logits.softmax(1) : Tensor();
    if (options.sum_pi_squared) squares.push_back(probability.square().sum(1));
    const LocalTargets all{chunk, torch::ones_like(chunk, torch::kBool)};
    if (options.entropy) entropies.push_back(score_chunk(logits, all, nullptr, true).entropy);
  }
  return {torch::cat(log_probs), options.entropy ? torch::cat(entropies) : Tensor(),
          options.sum_pi_squared ? torch::cat(squares) : Tensor()};
}

}  // namespace

const Tensor& head_weight(const Weights& weights) {
  TESSERA_CHECK(weights.model().head == ModelHead::language_model);
  TESSERA_CHECK(weights.holds(weights.rows.head));
  return weights.tensors[static_cast<std::size_t>(weights.rows.head)];
}

TokenScores score_tokens(const Tensor& hidden, const Tensor& head, Interval vocab,
                         const Tensor& targets, Communicator* tp, const ScoreOptions& options) {
  TESSERA_CHECK(options.order == SumOrder::fastest);
  const variable_list out =
      ScoreTokens::apply(hidden, head, targets, vocab.lo, vocab.hi, tp, options.temperature,
                         options.entropy, options.chunk_rows);
  return {out[0], options.entropy ? out[1] : Tensor(),
          options.sum_pi_squared ? squared_probabilities(hidden, head, tp, options) : Tensor()};
}

TokenScores score_tokens(const Weights& weights, const ParallelGroups& groups, const Tensor& hidden,
                         const Tensor& targets, const ScoreOptions& options) {
  if (options.order == SumOrder::fixed) {
    return score_in_order(weights, groups, hidden, targets, options);
  }
  return score_tokens(hidden, head_weight(weights), vocab_range(weights), targets, groups.tp.get(),
                      options);
}

Tensor own_logits(const Weights& weights, const Tensor& hidden, SumOrder order) {
  torch::NoGradGuard no_grad;
  const Tensor& head = head_weight(weights);
  return order == SumOrder::fixed ? ordered_product(hidden, head.t(), at::kFloat)
                                  : wide_logits(hidden, head);
}

Tensor full_logits(const Weights& weights, const ParallelGroups& groups, const Tensor& hidden,
                   SumOrder order) {
  return gather_columns(own_logits(weights, hidden, order), weights.model().vocab, groups.tp.get());
}

Tensor token_values(const Weights& weights, const Tensor& hidden) {
  TESSERA_CHECK(weights.model().head == ModelHead::value);
  return at::linear(hidden, weights.tensor(weights.rows.head)).squeeze(1).to(at::kFloat);
}

}  // namespace tessera
