// A reward model's steps in every kind of layout against transformers and torch
// (scripts/make_preference_vectors.py): scores, loss, norm, gradients, and weights after AdamW.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "executor/comm/thread_communicator.h"
#include "executor/preference/pairs.h"
#include "executor/preference/preference_loss.h"
#include "executor/train/trainer.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-5;  // of a tensor's largest element

const std::filesystem::path kFolder =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/executor/preference/transformers";

struct Case {
  std::string name;
  int tp = 1, cp = 1, pp = 1, dp = 1, zero = 0;
  std::int64_t token_limit = 0;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

ModelSpec reward_model() {
  Problems problems;
  ModelSpec model = read_model_spec(kFolder / "model", problems).value();
  model.head = ModelHead::value;
  return model;
}

PreferenceSet pairs_of(const json& values) {
  PreferenceSet set;
  for (const json& pair : values["pairs"]) {
    const auto whole = [&](const char* answer) {
      std::vector<std::int32_t> tokens = pair["prompt"];
      const std::vector<std::int32_t> more = pair[answer];
      tokens.insert(tokens.end(), more.begin(), more.end());
      tokens.push_back(0);
      return tokens;
    };
    set.pairs.push_back({whole("chosen"), whole("rejected"), pair["margin"]});
  }
  return set;
}

Weights loaded(const ModelSpec& model, const ParallelLayout& layout, const RankCoord& coord,
               const char* name) {
  Weights weights = make_weights(parameter_table(model), layout, coord, DType::fp32, torch::kCPU);
  Problems problems;
  load_weights(weights, kFolder / name, 1, problems);
  EXPECT_TRUE(problems.empty());
  return weights;
}

void expect_near(const torch::Tensor& found, const torch::Tensor& expected,
                 const std::string& name) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << name;
  const double largest = std::max(expected.abs().max().item<double>(), 0.1);
  EXPECT_LE((found - expected).abs().max().item<double>(), kTolerance * largest) << name;
}

class RewardModel : public testing::TestWithParam<Case> {
 protected:
  static void check(Communicator& world, const Case& c, const json& values) {
    const ModelSpec model = reward_model();
    const ParallelLayout layout{
        {.tp = c.tp, .cp = c.cp, .pp = c.pp, .dp = c.dp}, c.zero, even_stages(model.layers, c.pp)};
    std::vector<int> ranks(static_cast<std::size_t>(layout.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    Problems problems;
    const ParallelGroups groups = make_groups(
        world, make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "test", problems));
    ASSERT_TRUE(problems.empty());
    Weights weights = loaded(model, layout, groups.coord, "model");
    Trainer trainer(
        weights, groups,
        AdamWOptions{.eps = values["eps"], .weight_decay = values["weight_decay"], .clip_norm = 0});
    const PreferenceSet set = pairs_of(values);
    for (const json& step : values["steps"]) {
      expect_step(trainer, set, values, step, c);
      if (&step != &values["steps"].front()) continue;
      const Weights gradients = loaded(model, layout, groups.coord, "gradients");
      const std::vector<torch::Tensor> found = trainer.optimizer().whole_gradients();
      for (std::size_t row = 0; row < found.size(); ++row) {
        if (!found[row].defined()) continue;
        expect_near(found[row], gradients.tensors[row], weights.table.rows[row].name);
      }
    }
    const Weights trained = loaded(model, layout, groups.coord, "trained");
    trainer.with_whole_weights([&] {
      for (std::size_t row = 0; row < trained.tensors.size(); ++row) {
        if (!trained.tensors[row].defined()) continue;
        expect_near(weights.tensors[row].detach(), trained.tensors[row],
                    weights.table.rows[row].name);
      }
    });
  }

  static void expect_step(Trainer& trainer, const PreferenceSet& set, const json& values,
                          const json& step, const Case& c) {
    std::vector<std::int64_t> all(set.pairs.size());
    std::iota(all.begin(), all.end(), 0);
    const std::vector<TokenSequence> batch = set.sequences(all);
    std::vector<float> scores;
    std::vector<double> margins;
    for (const auto& value : trainer.values(batch, {.token_limit = c.token_limit})) {
      scores.push_back(value.front());
    }
    for (std::size_t i = 0; i < set.pairs.size(); ++i) {
      margins.push_back(set.pairs[i].margin);
      EXPECT_NEAR(scores[2 * i], step["chosen"][i].get<double>(), kTolerance * 10);
      EXPECT_NEAR(scores[2 * i + 1], step["rejected"][i].get<double>(), kTolerance * 10);
    }
    const PreferenceLoss loss = preference_loss(scores, margins, values["center_coefficient"]);
    EXPECT_NEAR(loss.value, step["loss"].get<double>(), kTolerance);
    EXPECT_NEAR(loss.accuracy, step["accuracy"].get<double>(), kTolerance);
    EXPECT_NEAR(loss.margin, step["margin"].get<double>(), kTolerance * 2);
    const UpdateResult result = trainer.update(
        batch, loss.function(c.dp),
        {.token_limit = c.token_limit, .learning_rate = values["lr"], .written = {}});
    const double norm = step["grad_norm"];
    EXPECT_NEAR(result.grad_norm, norm, kTolerance * norm);
  }
};

TEST_P(RewardModel, TrainsAsTransformersAndTorchDo) {
  std::ifstream in(kFolder / "steps.json");
  const json values = json::parse(in);
  const Case& c = GetParam();
  run_ranks(c.tp * c.cp * c.pp * c.dp, [&](Communicator& world) {
    torch::set_num_threads(1);
    check(world, c, values);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, RewardModel,
    testing::Values(Case{.name = "One"}, Case{.name = "OneInParts", .token_limit = 16},
                    Case{.name = "Tp2", .tp = 2}, Case{.name = "Cp2", .cp = 2},
                    Case{.name = "Pp2", .pp = 2, .token_limit = 24}, Case{.name = "Dp2", .dp = 2},
                    Case{.name = "Zero1", .dp = 2, .zero = 1},
                    Case{.name = "Fsdp2", .dp = 2, .zero = 3, .token_limit = 16},
                    Case{.name = "Tp2Pp2", .tp = 2, .pp = 2, .token_limit = 24},
                    Case{.name = "Tp2Fsdp2", .tp = 2, .dp = 2, .zero = 3},
                    Case{.name = "Pp2Dp2", .pp = 2, .dp = 2, .token_limit = 24},
                    Case{.name = "Fsdp4", .dp = 4, .zero = 3}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tessera
