// What the actor's loss is given of an experience: counts, weights, draws.
#include "executor/loop/loss_functions.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tessera {
namespace {

std::vector<Sequence> two_sequences() {
  std::vector<Sequence> batch(2);
  for (int i = 0; i < 2; ++i) {
    batch[i].sample_index = i;
    batch[i].response = {1, 2, 3};
    batch[i].old_log_prob = {-1.f, -0.5f, -0.25f};
    batch[i].advantages = {1.f, 1.f, static_cast<float>(-i)};
  }
  return batch;
}

double value_of(std::span<const Sequence> batch, const ActorOptions& options,
                const LossDraws& draws = {}) {
  const std::vector<double> log_prob{-0.9, -0.6, -0.2, -1.1, -0.4, -0.3};
  const std::vector<int> all{0, 1};
  const Aggregation counts = mini_batch_counts(batch, {}, 1);
  return actor_loss_function(batch, options, counts, draws)(all, log_prob, {}).value;
}

// The mean over six tokens, of which one is left out of the sum and not out of the count.
TEST(LossFunctions, RejectedTokensLeaveTheSumAndStayInTheCount) {
  std::vector<Sequence> batch = two_sequences();
  const ActorOptions options{.policy = {.loss = &kGpgLoss}};
  EXPECT_NEAR(value_of(batch, options), (0.9 + 0.6 + 1.1 + 0.4 - 0.3) / 6, 1e-6);
  batch[0].rejected = {1, 0, 0};
  EXPECT_NEAR(value_of(batch, options), (0.6 + 1.1 + 0.4 - 0.3) / 6, 1e-6);
  batch[0].response_mask = {1, 1, 0};  // a hole leaves both
  EXPECT_NEAR(value_of(batch, options), (0.6 + 1.1 + 0.4 - 0.3) / 5, 1e-6);
}

TEST(LossFunctions, WeightsOfRolloutCorrectionMultiplyTheLoss) {
  std::vector<Sequence> batch = two_sequences();
  const ActorOptions options{.policy = {.loss = &kGpgLoss}};
  for (Sequence& s : batch) s.rollout_is_weights = {2.f, 0.f, 1.f};
  EXPECT_NEAR(value_of(batch, options), (1.8 + 2.2 - 0.3) / 6, 1e-6);
}

// One of the candidates is left out, another one with another seed or step.
TEST(LossFunctions, DrawsDependOnSeedAndStep) {
  const std::vector<Sequence> batch = two_sequences();
  ActorOptions options{.policy = {.loss = &kClipCov}};
  options.policy.clip_ratio_low = options.policy.clip_ratio_high = 10;
  options.policy.clip_cov_lb = -10;
  options.policy.clip_cov_ub = 10;
  std::set<double> values;
  for (std::int64_t step = 1; step <= 20; ++step) {
    const double value = value_of(batch, options, {7, step});
    EXPECT_EQ(value_of(batch, options, {7, step}), value);
    values.insert(value);
  }
  EXPECT_GT(values.size(), 2U);
}

}  // namespace
}  // namespace tessera
