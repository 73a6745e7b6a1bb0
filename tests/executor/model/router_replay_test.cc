// Experts that are replayed: the model is transformers' with its routers' top-k replaced by the
// same experts; what is noted is what transformers' routers choose.
#include "executor/model/router_replay.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "executor/model/scores.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

constexpr const char* kReplayFixtures[] = {"tiny-mixtral",   "tiny-mixtral-tied",
                                           "tiny-qwen2-moe", "tiny-qwen2-moe-unbiased",
                                           "tiny-qwen3-moe", "tiny-qwen3-moe-step"};

Tensor in_order(const Tensor& experts) { return std::get<0>(experts.to(torch::kLong).sort(-1)); }

/// The model of the fixture on one rank, with gradients.
struct ReplayPass {
  Tensor log_probs, loss;
  std::map<std::string, Tensor> gradients;
};

ReplayPass replay_pass(const Fixture& fixture, Recompute recompute, const RouterReplay& replay) {
  ReplayPass out;
  on_ranks(fixture.spec, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    for (Tensor& tensor : weights.tensors) tensor.requires_grad_();
    const PackedTokens tokens = pack_tokens(fixture.sequences, torch::kCPU);
    StageOptions options;
    options.recompute = recompute;
    options.replay = replay;
    const Tensor hidden = stage_forward(weights, groups, tokens, {}, options);
    out.log_probs = score_tokens(weights, groups, hidden, (tokens.ids * 7 + 3) % fixture.spec.vocab,
                                 {1.0, false})
                        .log_prob;
    const Tensor slope = torch::arange(1, tokens.tokens() + 1).to(torch::kFloat).cos();
    const Tensor loss = (out.log_probs * slope).sum();
    loss.backward();
    out.loss = loss.detach().view({1});
    Weights of_weights = weights;
    for (Tensor& tensor : of_weights.tensors) {
      tensor = tensor.grad().defined() ? tensor.grad() : torch::zeros_like(tensor);
    }
    gather_weights(of_weights, groups, [&](const Parameter& parameter, const Tensor& whole) {
      out.gradients[parameter.name] = whole.clone();
    });
  });
  return out;
}

TEST(RouterReplay, LogProbsAndGradientsEqualTransformersWithTheseExperts) {
  for (const char* name : kReplayFixtures) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    const Tensor chosen = fixture.replay.at("chosen");
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const Tensor compared = torch::zeros({2}, torch::kLong);
      const ReplayPass got =
          replay_pass(fixture, recompute,
                      {.replayed = chosen.to(torch::kShort), .noted = {}, .compared = compared});
      EXPECT_LE(relative_error(got.log_probs, fixture.replay.at("log_probs")), 1e-5);
      EXPECT_LE(relative_error(got.loss, fixture.replay.at("loss")), 1e-5);
      int gradients = 0;
      for (const auto& [parameter, gradient] : fixture.replay) {
        const auto own = got.gradients.find(parameter);
        if (own == got.gradients.end()) continue;
        EXPECT_LE(relative_error(own->second, gradient), 1e-5) << parameter;
        ++gradients;
      }
      EXPECT_EQ(gradients, static_cast<int>(fixture.replay.size()) - 4);
      EXPECT_GE(gradients, 5);
      // A layer that is computed again is compared again.
      const std::int64_t times = recompute == Recompute::full ? 2 : 1;
      EXPECT_EQ(compared[0].item<std::int64_t>(), times * chosen.numel() / chosen.size(2));
      EXPECT_GT(compared[1].item<std::int64_t>(), 0);
    }
  }
}

TEST(RouterReplay, NotesWhatTransformersRoutersChoose) {
  for (const char* name : kReplayFixtures) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    const Tensor own = fixture.replay.at("own");
    const Tensor noted = torch::full_like(own, -1, torch::kShort);
    replay_pass(fixture, Recompute::none, {.replayed = {}, .noted = noted, .compared = {}});
    EXPECT_TRUE(torch::equal(in_order(noted), in_order(own)));
  }
}

TEST(RouterReplay, RowsWithoutExpertsKeepTheRoutersChoice) {
  const Tensor own = torch::tensor({{0, 1}, {2, 3}, {1, 3}, {0, 2}}, torch::kLong);
  const Tensor given = torch::tensor({{1, 0}, {-1, -1}, {1, 2}, {-1, -1}}, torch::kShort);
  const RouterReplay replay{.replayed = given,
                            .noted = torch::zeros({4, 2}, torch::kShort),
                            .compared = torch::zeros({2}, torch::kLong)};
  const Tensor want = torch::tensor({{1, 0}, {2, 3}, {1, 2}, {0, 2}}, torch::kLong);
  EXPECT_TRUE(torch::equal(replayed_choice(own, replay), want));
  EXPECT_TRUE(torch::equal(replay.noted.to(torch::kLong), want));
  EXPECT_TRUE(torch::equal(replay.compared, torch::tensor({2, 1}, torch::kLong)));
  const RouterReplay two = replay.of_rows(2, 2);
  EXPECT_TRUE(torch::equal(replayed_choice(own.narrow(0, 2, 2), two), want.narrow(0, 2, 2)));
}

}  // namespace
}  // namespace tessera::testing
