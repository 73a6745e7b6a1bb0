#include "executor/rl/kl.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

ValueAndSlope k3(double difference) {
  const double x = std::clamp(-difference, -20.0, 20.0);
  const double value = std::exp(x) - x - 1;
  const bool inside = std::abs(difference) <= 20 && std::abs(value) <= 10;
  return {std::clamp(value, -10.0, 10.0), inside ? 1 - std::exp(x) : 0};
}

ValueAndSlope estimate(KlEstimator estimator, double difference) {
  switch (estimator) {
    case KlEstimator::k1:
      return {difference, 1};
    case KlEstimator::abs:
      return {std::abs(difference), difference > 0 ? 1.0 : (difference < 0 ? -1.0 : 0.0)};
    case KlEstimator::k2:
      return {difference * difference / 2, difference};
    case KlEstimator::k3:
      return k3(difference);
  }
  return {};
}

}  // namespace

std::optional<KlPenalty> kl_penalty_from(std::string_view name) {
  KlPenalty penalty;
  if (name.ends_with('+')) {
    penalty.straight_through = true;
    name.remove_suffix(1);
  }
  if (name == "kl" || name == "k1") {
    penalty.estimator = KlEstimator::k1;
  } else if (name == "abs") {
    penalty.estimator = KlEstimator::abs;
  } else if (name == "mse" || name == "k2") {
    penalty.estimator = KlEstimator::k2;
  } else if (name == "low_var_kl" || name == "k3") {
    penalty.estimator = KlEstimator::k3;
  } else {
    return std::nullopt;
  }
  return penalty;
}

ValueAndSlope kl_penalty(KlPenalty penalty, double log_prob, double ref_log_prob) {
  const double difference = log_prob - ref_log_prob;
  ValueAndSlope result = estimate(penalty.estimator, difference);
  if (penalty.straight_through) result.slope = difference;
  return result;
}

void KlController::update(double current_kl, std::int64_t sequences) {
  if (!adaptive) return;
  const double error = std::clamp(current_kl / target_kl - 1, -0.2, 0.2);
  coef *= 1 + error * static_cast<double>(sequences) / horizon;
}

PenalizedRewards subtract_kl(const Rows& rows, View scores, View old_log_prob, View ref_log_prob,
                             KlPenalty penalty, KlController& controller) {
  Array kl(scores.size(), 0.0);
  PenalizedRewards result{.rewards = Array(scores.begin(), scores.end())};
  for (std::size_t i = 0; i < kl.size(); ++i) {
    if (!rows.valid(static_cast<std::int64_t>(i))) continue;
    kl[i] = kl_penalty(penalty, old_log_prob[i], ref_log_prob[i]).value;
    result.rewards[i] -= controller.coef * kl[i];
  }
  double current = 0;
  for (const double mean : masked_mean_rows(rows, kl)) current += mean;
  if (rows.count() > 0) current /= static_cast<double>(rows.count());
  result.metrics["actor/reward_kl_penalty"] = current;
  result.metrics["actor/reward_kl_penalty_coeff"] = controller.coef;
  controller.update(current, rows.count());
  return result;
}

}  // namespace tessera
