#include "executor/correction/correction_parts.h"

namespace tessera {

void add_off_policy_metrics(const Rows& rows, View trained_log_prob, View rollout_log_prob,
                            Metrics& metrics) {
  const Array trained = masked_mean_rows(rows, trained_log_prob);
  const Array rollout = masked_mean_rows(rows, rollout_log_prob);
  const auto perplexity = [](double mean) { return std::exp(-mean); };
  metrics["training_ppl"] = mean_of(mapped(trained, perplexity));
  metrics["training_log_ppl"] = -mean_of(trained);
  metrics["rollout_ppl"] = mean_of(mapped(rollout, perplexity));
  metrics["rollout_log_ppl"] = -mean_of(rollout);

  Array difference = rollout;
  for (std::size_t row = 0; row < difference.size(); ++row) difference[row] -= trained[row];
  metrics["log_ppl_diff"] = mean_of(difference);
  metrics["log_ppl_abs_diff"] = mean_of(mapped(difference, [](double x) { return std::abs(x); }));
  metrics["log_ppl_diff_max"] = largest(difference);
  metrics["log_ppl_diff_min"] = smallest(difference);
  metrics["ppl_ratio"] = mean_of(mapped(difference, [](double x) { return std::exp(x); }));

  Array log_ratio(trained_log_prob.begin(), trained_log_prob.end());
  for (std::size_t i = 0; i < log_ratio.size(); ++i) log_ratio[i] -= rollout_log_prob[i];
  const auto squared_ratio = [](double d) { return std::exp(2 * within_safety(d)); };
  metrics["kl"] = -masked_mean(rows, log_ratio);
  metrics["k3_kl"] =
      masked_mean(rows, mapped(rows, log_ratio, [](double d) { return std::exp(d) - d - 1; }));
  metrics["chi2_token"] = masked_mean(rows, mapped(rows, log_ratio, squared_ratio)) - 1;
  metrics["chi2_seq"] = mean_of(mapped(masked_sum_rows(rows, log_ratio), squared_ratio)) - 1;
}

}  // namespace tessera
