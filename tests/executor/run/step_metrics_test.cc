#include "executor/run/step_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

Sequence sequence(std::size_t prompt, std::size_t response, double score) {
  Sequence s;
  s.prompt.assign(prompt, 1);
  s.response.assign(response, 2);
  s.score = score;
  return s;
}

TEST(StepMetrics, SummariseScoresAndLengths) {
  Experience experience{.sequences = {sequence(2, 3, 0.5), sequence(4, 1, 1.0)}};
  experience.sequences[1].finished = true;
  const Metrics metrics = experience_metrics(experience, 3);
  EXPECT_DOUBLE_EQ(metrics.at("critic/score/mean"), 0.75);
  EXPECT_DOUBLE_EQ(metrics.at("critic/score/max"), 1.0);
  EXPECT_DOUBLE_EQ(metrics.at("response_length/mean"), 2.0);
  EXPECT_DOUBLE_EQ(metrics.at("response_length/clip_ratio"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("prompt_length/max"), 4.0);
  EXPECT_EQ(metrics.count("critic/values/mean"), 0u) << "values were not computed";
}

TEST(StepMetrics, HolesEnterNoTokenSummary) {
  Experience experience{.sequences = {sequence(1, 3, 0)}};
  experience.sequences[0].advantages = {1, 100, 3};
  experience.sequences[0].response_mask = {1, 0, 1};
  EXPECT_DOUBLE_EQ(experience_metrics(experience, 8).at("critic/advantages/mean"), 2.0);
}

TEST(StepMetrics, TheProbabilityGapComparesSamplerAndTrainer) {
  Experience experience{.sequences = {sequence(1, 2, 0)}};
  experience.sequences[0].rollout_log_prob = {std::log(0.5f), std::log(0.25f)};
  experience.sequences[0].old_log_prob = {std::log(0.4f), std::log(0.25f)};
  const Metrics metrics = experience_metrics(experience, 8);
  EXPECT_NEAR(metrics.at("training/rollout_probs_diff_max"), 0.1, 1e-6);
  EXPECT_NEAR(metrics.at("training/rollout_probs_diff_mean"), 0.05, 1e-6);
}

/// verl's own example: 600 tokens, 2 s, 2 GPUs.
TEST(StepMetrics, ThroughputCountsPromptAndResponseTokensPerGpu) {
  const Experience experience{.sequences = {sequence(300, 294, 0), sequence(0, 6, 0)}};
  const Metrics metrics =
      throughput_metrics(experience, {{"timing_s/step", 2.0}, {"timing_s/gen", 0.5}}, 2);
  EXPECT_DOUBLE_EQ(metrics.at("perf/throughput"), 150.0);
  EXPECT_DOUBLE_EQ(metrics.at("timing_per_token_ms/gen"), 0.5e3 / 300);
}

}  // namespace
}  // namespace tessera
