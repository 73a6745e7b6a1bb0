#include "executor/loop/loss_functions.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "executor/rl/sampling.h"

namespace tessera {
namespace {

std::vector<std::int64_t> indices(std::span<const int> sequences) {
  return {sequences.begin(), sequences.end()};
}

/// Parts of the loss add up over micro-batches as it does; all else is a mean over tokens.
bool is_part_of_loss(const std::string& name) {
  if (name.starts_with("distillation/")) return name == "distillation/loss";
  return name.ends_with("_loss");
}

void sort_metrics(const Metrics& metrics, LossGradient& gradient) {
  for (const auto& [name, value] : metrics) {
    (is_part_of_loss(name) ? gradient.sums : gradient.means)[name] = value;
  }
}

/// A number in [0, 1) for every token, which depends on what the token is and on nothing else.
Array draws_of(std::span<const Sequence> batch, std::span<const std::int64_t> which,
               const LossDraws& draws) {
  constexpr std::uint32_t kOfLosses = 0x80000000;  // apart from the draws of tokens
  Array numbers;
  for (const std::int64_t i : which) {
    const Sequence& s = batch[static_cast<std::size_t>(i)];
    for (std::uint32_t position = 0; position < s.response.size(); ++position) {
      numbers.push_back(
          uniform(draws.seed, {.step = static_cast<std::uint32_t>(draws.step),
                               .prompt = static_cast<std::uint32_t>(s.prompt_index),
                               .sample = kOfLosses | static_cast<std::uint32_t>(s.sample_index),
                               .position = position}));
    }
  }
  return numbers;
}

/// Weights of rollout correction; empty where it computed none.
Array weights_of(std::span<const Sequence> batch, std::span<const std::int64_t> which) {
  const bool computed = std::all_of(which.begin(), which.end(), [&](std::int64_t i) {
    return !batch[static_cast<std::size_t>(i)].rollout_is_weights.empty();
  });
  return computed ? flat(batch, which, &Sequence::rollout_is_weights) : Array{};
}

}  // namespace

Aggregation mini_batch_counts(std::span<const Sequence> batch, const Aggregation& options,
                              int dp_size) {
  const Rows rows = rows_of(batch);
  Aggregation counts = options;
  counts.batch_num_tokens = tokens_before_rejection(batch);
  counts.global_batch_size = rows.count();
  counts.dp_size = dp_size;
  return counts;
}

LossFunction actor_loss_function(std::span<const Sequence> batch, const ActorOptions& options,
                                 const Aggregation& counts, const LossDraws& draws) {
  return [=](std::span<const int> sequences, std::span<const double> log_prob,
             std::span<const double> entropy) {
    const std::vector<std::int64_t> which = indices(sequences);
    const Rows rows = rows_of(batch, which);
    const Array old_log_prob = flat(batch, which, &Sequence::old_log_prob);
    const Array advantages = flat(batch, which, &Sequence::advantages);
    const bool compares = options.use_kl_loss || options.distillation.enabled;
    const Array reference = compares ? flat(batch, which, &Sequence::ref_log_prob) : Array{};
    const Array weights = weights_of(batch, which);
    const Array random = options.policy.loss->reads_draws ? draws_of(batch, which, draws) : Array{};
    ActorLoss loss = actor_objective({.rows = rows,
                                      .log_prob = log_prob,
                                      .old_log_prob = old_log_prob,
                                      .advantages = advantages,
                                      .rollout_is_weights = weights,
                                      .ref_log_prob = reference,
                                      .entropy = entropy,
                                      .draws = random},
                                     options, counts);
    LossGradient gradient;
    gradient.value = loss.value;
    gradient.score_gradient = std::move(loss.log_prob_gradient);
    gradient.entropy_gradient = std::move(loss.entropy_gradient);
    gradient.weight = static_cast<double>(rows.valid_entries());
    sort_metrics(loss.metrics, gradient);
    return gradient;
  };
}

LossFunction critic_loss_function(std::span<const Sequence> batch, double cliprange_value,
                                  const Aggregation& counts) {
  return
      [=](std::span<const int> sequences, std::span<const double> values, std::span<const double>) {
        const std::vector<std::int64_t> which = indices(sequences);
        const Rows rows = rows_of(batch, which);
        Loss loss = value_loss(rows, values, flat(batch, which, &Sequence::values),
                               flat(batch, which, &Sequence::returns), cliprange_value, counts);
        LossGradient gradient;
        gradient.value = loss.value;
        gradient.score_gradient = std::move(loss.gradient);
        gradient.weight = static_cast<double>(rows.valid_entries());
        gradient.sums["critic/vf_loss"] = loss.value;
        gradient.means["critic/vpred_mean"] = masked_mean(rows, values);
        sort_metrics(loss.metrics, gradient);
        return gradient;
      };
}

}  // namespace tessera
