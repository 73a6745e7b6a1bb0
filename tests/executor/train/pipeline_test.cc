#include "executor/train/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

constexpr std::int64_t kWidth = 5;

torch::Tensor stage_weight(int stage) {
  auto generator = at::detail::createCPUGenerator(100 + static_cast<std::uint64_t>(stage));
  return torch::randn({kWidth, kWidth}, generator, torch::kFloat64);
}

torch::Tensor micro_batch(int m) {
  auto generator = at::detail::createCPUGenerator(200 + static_cast<std::uint64_t>(m));
  return torch::randn({m + 1, kWidth}, generator, torch::kFloat64);  // ragged
}

PipelineShape shape_of(int micro_batches) {
  PipelineShape shape{.tokens = {}, .width = kWidth, .options = torch::kFloat64};
  for (int m = 0; m < micro_batches; ++m) shape.tokens.push_back(m + 1);
  return shape;
}

torch::Tensor apply(const torch::Tensor& x, const torch::Tensor& weight) {
  return torch::tanh(x.matmul(weight));
}

/// Gradients of sum over micro-batches of (m + 1) * sum(output), without a pipeline.
std::vector<torch::Tensor> plain_gradients(int stages, int micro_batches) {
  std::vector<torch::Tensor> weights;
  for (int s = 0; s < stages; ++s) weights.push_back(stage_weight(s).requires_grad_(true));
  for (int m = 0; m < micro_batches; ++m) {
    torch::Tensor x = micro_batch(m);
    for (const torch::Tensor& weight : weights) x = apply(x, weight);
    (x.sum() * (m + 1)).backward();
  }
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& weight : weights) gradients.push_back(weight.grad());
  return gradients;
}

struct PipelineCase {
  int stages, micro_batches;
};

class PipelineOf : public testing::TestWithParam<PipelineCase> {};

TEST_P(PipelineOf, GivesTheGradientsOfTheWholeModelWithFewInFlight) {
  const auto [stages, count] = GetParam();
  const std::vector<torch::Tensor> expected = plain_gradients(stages, count);
  run_ranks(stages, [&, stages = stages, count = count](Communicator& world) {
    torch::set_num_threads(1);
    const PipelineLinks links = make_links(stages == 1 ? nullptr : &world);
    const torch::Tensor weight = stage_weight(links.stage).requires_grad_(true);
    int in_flight = 0, most = 0;
    PipelineShape shape = shape_of(count);
    shape.sums = 2;
    train_pipeline(links, shape, [&](int m, int, const torch::Tensor& input) -> StageOutput {
      most = std::max(most, ++in_flight);
      const torch::Tensor output = apply(links.previous ? input : micro_batch(m), weight);
      const torch::Tensor sums =
          torch::tensor({static_cast<float>(links.stage + 1), static_cast<float>(m)});
      output.register_hook([&, sums, m](const torch::Tensor&) {
        --in_flight;
        EXPECT_EQ(sums[0].item<int>(), stages * (stages + 1) / 2);
        EXPECT_EQ(sums[1].item<int>(), stages * m);
      });
      if (links.next) return {{output}, {}, sums};
      return {{output}, {torch::full_like(output, m + 1.0)}, sums};
    });
    EXPECT_EQ(in_flight, 0);
    EXPECT_LE(most, std::min(stages - links.stage, count));
    EXPECT_TRUE(torch::allclose(weight.grad(), expected[static_cast<std::size_t>(links.stage)],
                                1e-12, 1e-12));
  });
}

TEST_P(PipelineOf, InfersWhatTheWholeModelComputes) {
  const auto [stages, count] = GetParam();
  run_ranks(stages, [&, stages = stages, count = count](Communicator& world) {
    torch::set_num_threads(1);
    const torch::NoGradGuard no_grad;
    const PipelineLinks links = make_links(stages == 1 ? nullptr : &world);
    int finished = 0;
    infer_pipeline(links, shape_of(count), [&](int m, int, const torch::Tensor& input) {
      const torch::Tensor output =
          apply(links.previous ? input : micro_batch(m), stage_weight(links.stage));
      if (links.next) return output;
      torch::Tensor expected = micro_batch(m);
      for (int s = 0; s < stages; ++s) expected = apply(expected, stage_weight(s));
      EXPECT_TRUE(torch::equal(output, expected));
      ++finished;
      return torch::Tensor();
    });
    EXPECT_EQ(finished, links.next ? 0 : count);
  });
}

std::vector<PipelineCase> cases() {
  std::vector<PipelineCase> all;
  for (int stages = 1; stages <= 5; ++stages)
    for (const int count : {1, 2, 3, 4, 7}) all.push_back({stages, count});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Stages, PipelineOf, testing::ValuesIn(cases()), [](const auto& info) {
  return std::to_string(info.param.stages) + "And" + std::to_string(info.param.micro_batches) +
         "MicroBatches";
});

}  // namespace
}  // namespace tessera
