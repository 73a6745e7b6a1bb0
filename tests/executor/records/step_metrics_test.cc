#include "executor/records/step_metrics.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

Sequence sequence(std::size_t prompt, std::size_t response) {
  Sequence s;
  s.prompt.assign(prompt, 1);
  s.response.assign(response, 2);
  return s;
}

/// verl's own example: 600 tokens, 2 s, 2 GPUs.
TEST(StepMetrics, ThroughputCountsPromptAndResponseTokensPerGpu) {
  const Experience experience{.sequences = {sequence(300, 294), sequence(1, 5)}};
  const Metrics metrics =
      throughput_metrics(experience, {{"timing_s/step", 2.0}, {"timing_s/gen", 0.5}}, 2);
  EXPECT_DOUBLE_EQ(metrics.at("perf/throughput"), 150.0);
  EXPECT_DOUBLE_EQ(metrics.at("timing_per_token_ms/gen"), 0.5e3 / 299);
  EXPECT_DOUBLE_EQ(metrics.at("global_seqlen/min"), 6);
  EXPECT_EQ(metrics.count("timing_per_token_ms/values"), 0u) << "there was no such phase";
}

}  // namespace
}  // namespace tessera
