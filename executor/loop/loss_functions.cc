#include "executor/loop/loss_functions.h"

#include <utility>
#include <vector>

namespace tessera {
namespace {

std::vector<std::int64_t> indices(std::span<const int> sequences) {
  return {sequences.begin(), sequences.end()};
}

/// Parts of the loss add up over micro-batches as it does; all else is a mean over tokens.
bool is_part_of_loss(const std::string& name) { return name.ends_with("_loss"); }

void sort_metrics(const Metrics& metrics, LossGradient& gradient) {
  for (const auto& [name, value] : metrics) {
    (is_part_of_loss(name) ? gradient.sums : gradient.means)[name] = value;
  }
}

}  // namespace

Aggregation mini_batch_counts(std::span<const Sequence> batch, const Aggregation& options,
                              int dp_size) {
  const Rows rows = rows_of(batch);
  Aggregation counts = options;
  counts.batch_num_tokens = rows.valid_entries();
  counts.global_batch_size = rows.count();
  counts.dp_size = dp_size;
  return counts;
}

LossFunction actor_loss_function(std::span<const Sequence> batch, const ActorOptions& options,
                                 const Aggregation& counts) {
  return [=](std::span<const int> sequences, std::span<const double> log_prob,
             std::span<const double> entropy) {
    const std::vector<std::int64_t> which = indices(sequences);
    const Rows rows = rows_of(batch, which);
    const Array old_log_prob = flat(batch, which, &Sequence::old_log_prob);
    const Array advantages = flat(batch, which, &Sequence::advantages);
    const Array reference =
        options.use_kl_loss ? flat(batch, which, &Sequence::ref_log_prob) : Array{};
    ActorLoss loss = actor_objective({.rows = rows,
                                      .log_prob = log_prob,
                                      .old_log_prob = old_log_prob,
                                      .advantages = advantages,
                                      .ref_log_prob = reference,
                                      .entropy = entropy},
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
