#include "executor/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "cost_models/documents/problem.h"
#include "executor/comm/thread_communicator.h"
#include "executor/model/scores.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

constexpr double kTolerance = 1e-5;

/// One rank's answer to one mini-batch: loss, metrics, gradients before clipping.
struct Reference {
  UpdateResult result;
  double grad_norm = 0;
  std::vector<torch::Tensor> gradients;  // by row
  std::vector<int> outer_dims;
  LogProbs log_probs;
};

LossFunction loss_for(const ModelSpec& model, const Tokens& tokens, int dp) {
  return quadratic_loss(tokens, dp, model.head == ModelHead::language_model);
}

UpdateOptions update_options(const ModelSpec& model, std::int64_t limit = 0) {
  return {.token_limit = limit,
          .temperature = 0.7,
          .entropy = model.head == ModelHead::language_model,
          .learning_rate = 0};
}

Reference reference(const ModelSpec& model, const Tokens& tokens) {
  Reference ref;
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    const auto batch = tokens.sequences();
    ref.result = trainer.update(batch, loss_for(model, tokens, 1), update_options(model));
    ref.grad_norm = ref.result.grad_norm;
    for (const torch::Tensor& gradient : trainer.optimizer().gradients())
      ref.gradients.push_back(gradient.clone());
    for (const ArenaSlot& slot : role->weights.arena.slots)
      ref.outer_dims.push_back(slot.outer_dim);
    if (model.head == ModelHead::language_model)
      ref.log_probs = trainer.log_probs(batch, {.temperature = 0.7, .entropy = true});
  });
  return ref;
}

void expect_gradients_equal(const Weights& weights, const std::vector<torch::Tensor>& gradients,
                            const Reference& ref, double tolerance) {
  for (std::size_t row = 0; row < gradients.size(); ++row) {
    if (!gradients[row].defined()) continue;
    const torch::Tensor expected =
        slice_like(weights, static_cast<int>(row), ref.gradients[row], ref.outer_dims[row]);
    // The tolerance is relative to the whole tensor's largest element.
    const double largest = ref.gradients[row].abs().max().item<double>();
    const double difference = (gradients[row] - expected).abs().max().item<double>();
    EXPECT_LE(difference, tolerance * largest) << weights.table.rows[row].name;
  }
}

struct Case {
  std::string name;
  ModelSpec model;
  int tp = 1, pp = 1, dp = 1;
  std::int64_t token_limit = 0;
  std::vector<LayerRange> stages = {};

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class TrainerOn : public testing::TestWithParam<Case> {
 protected:
  ParallelLayout layout() const {
    ParallelLayout layout =
        layout_of(GetParam().model, GetParam().tp, GetParam().pp, GetParam().dp);
    if (!GetParam().stages.empty()) layout.stages = GetParam().stages;
    return layout;
  }
};

TEST_P(TrainerOn, HasOneRanksLossMetricsGradientsAndNorm) {
  const Case& c = GetParam();
  const Tokens tokens = random_tokens(9, c.model.vocab, 3);
  const Reference ref = reference(c.model, tokens);
  EXPECT_GT(ref.grad_norm, 0.01);
  run_ranks(layout().ranks(), [&](Communicator& world) {
    const auto role = make_role(world, c.model, layout());
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    const auto batch = tokens.sequences();
    const UpdateResult result = trainer.update(batch, loss_for(c.model, tokens, c.dp),
                                               update_options(c.model, c.token_limit));
    EXPECT_NEAR(result.loss, ref.result.loss,
                kTolerance * std::max(1.0, std::abs(ref.result.loss)));
    EXPECT_NEAR(result.metrics.at("half"), ref.result.metrics.at("half"), kTolerance);
    EXPECT_NEAR(result.metrics.at("score"), ref.result.metrics.at("score"), kTolerance * 10);
    EXPECT_NEAR(result.grad_norm, ref.grad_norm, kTolerance * std::max(1.0, ref.grad_norm));
    expect_gradients_equal(role->weights, trainer.optimizer().gradients(), ref, kTolerance);
  });
}

TEST_P(TrainerOn, InfersTheSameOnEveryRankAsOnOne) {
  const Case& c = GetParam();
  if (c.model.head != ModelHead::language_model) GTEST_SKIP() << "values have their own test";
  const Tokens tokens = random_tokens(9, c.model.vocab, 3);
  const Reference ref = reference(c.model, tokens);
  run_ranks(layout().ranks(), [&](Communicator& world) {
    const auto role = make_role(world, c.model, layout());
    Trainer trainer(role->weights, role->groups, std::nullopt);
    const LogProbs found = trainer.log_probs(
        tokens.sequences(), {.token_limit = c.token_limit, .temperature = 0.7, .entropy = true});
    ASSERT_EQ(found.log_prob.size(), tokens.prompts.size());
    for (std::size_t s = 0; s < tokens.prompts.size(); ++s) {
      ASSERT_EQ(found.log_prob[s].size(), tokens.responses[s].size());
      for (std::size_t t = 0; t < found.log_prob[s].size(); ++t) {
        EXPECT_NEAR(found.log_prob[s][t], ref.log_probs.log_prob[s][t], 1e-4);
        EXPECT_NEAR(found.entropy[s][t], ref.log_probs.entropy[s][t], 1e-4);
      }
    }
  });
}

std::vector<Case> layouts() {
  std::vector<Case> all;
  const auto add_all = [&](const std::string& name, const ModelSpec& model) {
    all.push_back({name + "Tp2", model, 2, 1, 1});
    all.push_back({name + "Pp2", model, 1, 2, 1, 30});
    all.push_back({name + "Tp2Pp2", model, 2, 2, 1, 30});
    all.push_back({name + "Dp2", model, 1, 1, 2});
    all.push_back({name + "Tp2Dp2", model, 2, 1, 2, 25});
    all.push_back({name + "Tp4", model, 4, 1, 1});
    all.push_back({name + "Pp4", model, 1, 4, 1, 20});
  };
  add_all("Qwen2", qwen2());
  add_all("Llama", llama());
  all.push_back({"Qwen3Tp4", qwen3(), 4, 1, 1});
  all.push_back({"Qwen3Tp2Pp2", qwen3(), 2, 2, 1, 30});
  all.push_back({"Qwen2Pp2Dp2", qwen2(), 1, 2, 2, 20});
  all.push_back({"Qwen2Dp3", qwen2(), 1, 1, 3});
  all.push_back({"LlamaUnevenStages", llama(), 1, 3, 1, 20, {{0, 1}, {1, 4}, {4, 5}}});
  all.push_back({"CriticTp2Pp2", critic(), 2, 2, 1, 30});
  all.push_back({"CriticTp2Dp2", critic(), 2, 1, 2});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layouts, TrainerOn, testing::ValuesIn(layouts()),
                         [](const auto& info) { return info.param.name; });

TEST(Trainer, DoesNotDependOnTheNumberOfMicroBatches) {
  const ModelSpec model = qwen2();
  const Tokens tokens = random_tokens(9, model.vocab, 5);
  const Reference ref = reference(model, tokens);
  for (const std::int64_t limit : {1, 20, 40}) {
    run_ranks(1, [&](Communicator& world) {
      const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
      Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
      const UpdateResult result = trainer.update(tokens.sequences(), loss_for(model, tokens, 1),
                                                 update_options(model, limit));
      EXPECT_NEAR(result.loss, ref.result.loss, kTolerance);
      expect_gradients_equal(role->weights, trainer.optimizer().gradients(), ref, kTolerance);
    });
  }
}

TEST(Trainer, LogProbsAreThoseOfTheWholeLogits) {
  const ModelSpec model = llama();
  const Tokens tokens = random_tokens(4, model.vocab, 11);
  run_ranks(1, [&](Communicator& world) {
    const torch::NoGradGuard no_grad;
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    Trainer trainer(role->weights, role->groups, std::nullopt);
    const LogProbs found =
        trainer.log_probs(tokens.sequences(), {.temperature = 0.5, .entropy = true});
    for (std::size_t s = 0; s < tokens.prompts.size(); ++s) {
      std::vector<std::int64_t> ids(tokens.prompts[s].begin(), tokens.prompts[s].end());
      ids.insert(ids.end(), tokens.responses[s].begin(), tokens.responses[s].end());
      const PackedTokens packed = pack_tokens({&ids, 1}, torch::kCPU);
      const torch::Tensor log_probs =
          torch::log_softmax(full_logits(role->weights, role->groups,
                                         stage_forward(role->weights, role->groups, packed)) /
                                 0.5,
                             -1);
      for (std::size_t t = 0; t < tokens.responses[s].size(); ++t) {
        const auto row = static_cast<std::int64_t>(tokens.prompts[s].size() + t) - 1;
        EXPECT_NEAR(found.log_prob[s][t], log_probs[row][tokens.responses[s][t]].item<double>(),
                    1e-4);
        const torch::Tensor p = log_probs[row];
        EXPECT_NEAR(found.entropy[s][t], -(p.exp() * p).sum().item<double>(), 1e-4);
      }
    }
  });
}

TEST(Trainer, ValuesAndScoresAreOfTheRightPositionsInEveryLayout) {
  const ModelSpec model = critic();
  const Tokens tokens = random_tokens(6, model.vocab, 13);
  TokenValues expected;
  std::vector<float> last;
  run_ranks(1, [&](Communicator& world) {
    const torch::NoGradGuard no_grad;
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    for (std::size_t s = 0; s < tokens.prompts.size(); ++s) {
      std::vector<std::int64_t> ids(tokens.prompts[s].begin(), tokens.prompts[s].end());
      ids.insert(ids.end(), tokens.responses[s].begin(), tokens.responses[s].end());
      const torch::Tensor values = token_values(
          role->weights,
          stage_forward(role->weights, role->groups, pack_tokens({&ids, 1}, torch::kCPU)));
      const float* v = values.const_data_ptr<float>();
      expected.push_back({v + tokens.prompts[s].size() - 1, v + ids.size() - 1});
      last.push_back(v[ids.size() - 1]);
    }
  });
  for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, {2, 2, 1}, {1, 2, 2}}) {
    const ParallelLayout layout = layout_of(model, tp, pp, dp);
    run_ranks(layout.ranks(), [&](Communicator& world) {
      const auto role = make_role(world, model, layout);
      Trainer trainer(role->weights, role->groups, std::nullopt);
      const TokenValues values = trainer.values(tokens.sequences(), {.token_limit = 20});
      const std::vector<float> scores = trainer.scores(tokens.sequences(), {.token_limit = 20});
      ASSERT_EQ(values.size(), expected.size());
      for (std::size_t s = 0; s < expected.size(); ++s) {
        ASSERT_EQ(values[s].size(), tokens.responses[s].size());
        for (std::size_t t = 0; t < values[s].size(); ++t)
          EXPECT_NEAR(values[s][t], expected[s][t], 1e-4);
        EXPECT_NEAR(scores[s], last[s], 1e-4);
      }
    });
  }
}

TEST(Trainer, WorksWithFewerSequencesThanReplicas) {
  const ModelSpec model = qwen2();
  const Tokens tokens = random_tokens(2, model.vocab, 17);
  const Reference ref = reference(model, tokens);
  run_ranks(3, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 3));
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    const UpdateResult result =
        trainer.update(tokens.sequences(), loss_for(model, tokens, 3), update_options(model));
    EXPECT_NEAR(result.loss, ref.result.loss, kTolerance);
    expect_gradients_equal(role->weights, trainer.optimizer().gradients(), ref, kTolerance);
  });
}

TEST(Trainer, RefusesLayoutsItCannotTrainByName) {
  run_ranks(1, [&](Communicator& world) {
    const ModelSpec model = qwen2();
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    role->weights.layout.cp = 3;
    role->weights.layout.ulysses = true;
    role->weights.layout.ep = 2;
    try {
      Trainer trainer(role->weights, role->groups, std::nullopt);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::infeasible);
      EXPECT_NE(std::string(error.what()).find("divide them, ep 2 of a model without experts"),
                std::string::npos);
    }
  });
}

}  // namespace
}  // namespace tessera
