// The load-balancing loss of whole models that transformers made, and its gradients, equal
// transformers' own over stages, context parallelism and experts that are dealt out.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/context_parallel.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/trainer.h"
#include "tests/executor/model/fixture.h"
#include "tests/executor/train/layout_cases.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

/// Whole gradients by checkpoint name of the load-balancing loss alone, of one batch in one
/// micro-batch, and the loss.
std::map<std::string, torch::Tensor> gradients_of_balance(Communicator& world,
                                                          const testing::Fixture& fixture,
                                                          const ParallelLayout& layout,
                                                          UpdateResult& result) {
  const auto role = make_role(world, fixture.spec, layout);
  Problems problems;
  load_weights(role->weights, fixture.folder, 1, problems);
  EXPECT_TRUE(problems.empty());
  Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
  Tokens tokens;
  for (const auto& ids : fixture.sequences) {
    tokens.prompts.emplace_back(ids.begin(), ids.begin() + 2);
    tokens.responses.emplace_back(ids.begin() + 2, ids.end());
  }
  const LossFunction nothing = [](std::span<const int>, std::span<const double> scores,
                                  std::span<const double>) {
    return LossGradient{.score_gradient = std::vector<double>(scores.size(), 0.0), .weight = 1};
  };
  result = trainer.update(tokens.sequences(), nothing, {.router_aux_loss_coef = 0.25});
  Weights gradients = role->weights;
  gradients.tensors = trainer.optimizer().whole_gradients();
  std::map<std::string, torch::Tensor> whole;
  gather_weights(gradients, role->groups, [&](const Parameter& parameter, const torch::Tensor& t) {
    whole[parameter.name] = t.clone();
  });
  return whole;
}

TEST(BalanceLoss, EqualsTransformersOverStagesContextAndExperts) {
  for (const char* name : {"tiny-mixtral", "tiny-mixtral-tied", "tiny-qwen2-moe",
                           "tiny-qwen2-moe-unbiased", "tiny-qwen3-moe", "tiny-qwen3-moe-step"}) {
    const testing::Fixture fixture = testing::read_fixture(name);
    const ModelSpec& m = fixture.spec;
    const auto with = [&](ParallelLayout layout, int cp, int ep, int etp) {
      layout.cp = cp;
      layout.ulysses = !context_refusal(m, layout).empty();
      layout.ep = ep;
      layout.etp = etp;
      return layout;
    };
    for (const ParallelLayout& cut :
         {with(layout(m, 1, 1, 1, 1, 0), 1, 1, 1), with(layout(m, 1, 3, 1, 1, 0), 1, 1, 1),
          with(layout(m, 1, 1, 1, 1, 0), 2, 1, 1), with(layout(m, 1, 3, 1, 1, 0), 2, 2, 1),
          with(layout(m, 2, 3, 1, 1, 0, true), 1, 2, 1), with(layout(m, 2, 1, 1, 1, 0), 2, 1, 2),
          with(layout(m, 4, 1, 1, 1, 0, true), 1, 1, 2),
          with(layout(m, 4, 1, 1, 1, 0, true), 1, 2, 2)}) {
      SCOPED_TRACE(std::string(name) + " " + describe(cut));
      run_ranks(cut.ranks(), [&](Communicator& world) {
        UpdateResult result;
        const auto got = gradients_of_balance(world, fixture, cut, result);
        const double want = fixture.gradients.at("balance").item<double>();
        EXPECT_NEAR(result.metrics.at("router_aux_loss"), want, 1e-6 * want);
        EXPECT_NEAR(result.loss, 0.25 * want, 1e-6);
        if (world.rank() != 0) return;
        int compared = 0;
        for (const auto& [parameter, gradient] : fixture.gradients) {
          if (!parameter.starts_with("balance/")) continue;
          const torch::Tensor own = got.at(parameter.substr(8)) * 4;
          EXPECT_LE(testing::relative_error(own, gradient), 1e-5) << parameter;
          ++compared;
        }
        EXPECT_GE(compared, 2);
      });
    }
  }
}

}  // namespace
}  // namespace tessera
