#include "executor/estimators/experience_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "executor/comm/thread_communicator.h"
#include "executor/losses/losses.h"

namespace tessera {
namespace {

Sequence sequence(int prompt, int sample, std::size_t tokens, double score) {
  Sequence s{.prompt_index = prompt,
             .sample_index = sample,
             .uid = "g" + std::to_string(prompt),
             .prompt = {1, 2},
             .response = std::vector<std::int32_t>(tokens, 5),
             .score = score};
  for (std::size_t t = 0; t < tokens; ++t) {
    const float x = 0.1f * static_cast<float>(t + 1);
    s.old_log_prob.push_back(-x);
    s.ref_log_prob.push_back(-2 * x);
    s.rollout_log_prob.push_back(-x);
    s.values.push_back(0.5f - x);
  }
  return s;
}

Experience experience() {
  return {.step = 1,
          .sequences = {sequence(0, 0, 2, 1), sequence(0, 1, 3, 0), sequence(1, 0, 1, 0.5),
                        sequence(1, 1, 4, 0.5)}};
}

TEST(ExperienceMath, TheScoreStandsOnTheLastToken) {
  Experience e = experience();
  place_scores(e);
  EXPECT_EQ(e.sequences[0].token_rewards, (std::vector<float>{0, 1}));
  EXPECT_EQ(e.sequences[3].token_rewards, (std::vector<float>{0, 0, 0, 0.5f}));
}

// D = old - ref = 0.1 (t + 1); row means 0.15, 0.2, 0.1, 0.25, so the mean of them is 0.175.
TEST(ExperienceMath, TheKlIsTakenFromEveryTokenOnce) {
  Experience e = experience();
  place_scores(e);
  KlController controller{.adaptive = true, .coef = 0.5, .target_kl = 0.1, .horizon = 100};
  const Metrics metrics = subtract_kl(e, KlPenalty{}, controller);
  EXPECT_NEAR(e.sequences[0].token_rewards[0], -0.05, 1e-6);
  EXPECT_NEAR(e.sequences[0].token_rewards[1], 1 - 0.1, 1e-6);
  EXPECT_NEAR(metrics.at("actor/reward_kl_penalty"), 0.175, 1e-6);
  EXPECT_EQ(metrics.at("actor/reward_kl_penalty_coeff"), 0.5);
  EXPECT_NEAR(controller.coef, 0.5 * (1 + 0.2 * 4 / 100), 1e-12);
}

// Group 0: scores 1 and 0, mean 0.5, std sqrt(1/2); group 1: equal scores.
TEST(ExperienceMath, GroupsAreEqualUids) {
  Experience e = experience();
  place_scores(e);
  compute_advantages(e, {.estimator = &kGrpo});
  const double a = 0.5 / (std::sqrt(0.5) + 1e-6);
  EXPECT_NEAR(e.sequences[0].advantages[0], a, 1e-6);
  EXPECT_NEAR(e.sequences[1].advantages[2], -a, 1e-6);
  EXPECT_EQ(e.sequences[3].advantages, (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(e.sequences[0].returns, e.sequences[0].advantages);
}

// gamma = lam = 1: the return of every token is the score, whatever the values are.
TEST(ExperienceMath, UndiscountedReturnsAreTheScore) {
  Experience e = experience();
  place_scores(e);
  compute_advantages(e, {.estimator = &kGae});
  double sum = 0, squares = 0, count = 0;
  for (const Sequence& s : e.sequences) {
    for (std::size_t t = 0; t < s.response.size(); ++t) {
      EXPECT_NEAR(s.returns[t], s.score, 1e-6);
      sum += s.advantages[t];
      squares += s.advantages[t] * s.advantages[t];
      ++count;
    }
  }
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares / (count - 1), 1, 1e-5);
}

TEST(ExperienceMath, MetricsAreOfWhatIsFilled) {
  Experience e = experience();
  place_scores(e);
  Metrics metrics = data_metrics(e, {.prompt = 2, .response = 4});
  EXPECT_EQ(metrics.at("critic/score/mean"), 0.5);
  EXPECT_EQ(metrics.at("critic/rewards/max"), 1);
  EXPECT_EQ(metrics.at("response_length/mean"), 2.5);
  EXPECT_EQ(metrics.at("response_length/clip_ratio"), 0.25);
  EXPECT_EQ(metrics.at("prompt_length/clip_ratio"), 1);
  EXPECT_EQ(metrics.at("training/rollout_probs_diff_max"), 0);
  EXPECT_FALSE(metrics.contains("critic/advantages/mean"));
  EXPECT_FALSE(metrics.contains("critic/vf_explained_var"));
  for (Sequence& s : e.sequences) s.returns = s.values;
  EXPECT_NEAR(data_metrics(e).at("critic/vf_explained_var"), 1, 1e-12);
}

TEST(ExperienceMath, GroupsWhoseScoresAreEqualAreCounted) {
  const auto equal = [](const std::vector<std::pair<std::string, float>>& rows) {
    Experience e;
    for (const auto& [uid, score] : rows) {
      Sequence s;
      s.uid = uid;
      s.score = score;
      e.sequences.push_back(s);
    }
    return data_metrics(e).at("critic/score/equal_groups");
  };
  EXPECT_EQ(equal({{"a", 0}, {"a", 0}, {"b", 1}, {"b", 1}}), 1) << "alike within each group";
  EXPECT_EQ(equal({{"a", 0}, {"a", 0}, {"b", 0}, {"b", 1}}), 0.5);
  EXPECT_EQ(equal({{"a", 0}, {"b", 1}, {"a", 1}, {"b", 0}}), 0);
  EXPECT_EQ(equal({{"a", 0}, {"b", 0}, {"c", 0}}), 1) << "one response each: the step's";
  EXPECT_EQ(equal({{"a", 0}, {"b", 0}, {"c", 1}}), 0);
}

TEST(ExperienceMath, RanksGatherEachOthersSequences) {
  const Experience whole = experience();
  run_ranks(3, [&](Communicator& world) {
    Experience mine{.step = 1};
    for (std::size_t i = 0; i < whole.sequences.size(); ++i) {
      if (static_cast<int>(i % 2) == world.rank()) mine.sequences.push_back(whole.sequences[i]);
    }
    const auto packed = pack(mine.sequences, kAllFields);  // rank 2 brings nothing
    for (const auto& block : all_gather_bytes(world, packed)) unpack(block, mine);
    EXPECT_EQ(mine, whole);
  });
}

/// The gradients against central differences, on random ragged batches: what the golden vectors do
/// not vary together.
TEST(ActorObjective, GradientsAreTheSlopesOfTheLoss) {
  std::mt19937 engine(11);
  std::uniform_real_distribution<double> logp(-3, -0.1), adv(-2, 2);
  for (const PolicyLoss* policy : {&kVanilla, &kDro}) {
    for (const AggregationMode aggregation_mode :
         {AggregationMode::token_mean, AggregationMode::seq_mean_token_mean}) {
      Rows rows{.begin = {0, 3, 3, 8}, .mask = {1, 0, 1, 1, 1, 1, 0, 1}};
      Array log_prob, old, ref, advantages, entropy;
      for (int i = 0; i < 8; ++i) {
        log_prob.push_back(logp(engine));
        old.push_back(logp(engine));
        ref.push_back(logp(engine));
        advantages.push_back(adv(engine));
        entropy.push_back(-logp(engine));
      }
      const ActorOptions options{.policy = {.loss = policy, .dro_beta = 0.4},
                                 .entropy_coeff = 0.05,
                                 .use_kl_loss = true,
                                 .kl_loss_coef = 0.3};
      const Aggregation aggregation{.mode = aggregation_mode, .dp_size = 2};
      const auto loss = [&] {
        return actor_objective({rows, log_prob, old, advantages, {}, ref, entropy}, options,
                               aggregation);
      };
      const ActorLoss at = loss();
      for (std::size_t i = 0; i < 8; ++i) {
        const double x = log_prob[i], h = 1e-6;
        log_prob[i] = x + h;
        const double up = loss().value;
        log_prob[i] = x - h;
        const double down = loss().value;
        log_prob[i] = x;
        EXPECT_NEAR(at.log_prob_gradient[i], (up - down) / (2 * h), 1e-6) << i;
      }
    }
  }
}

// d of the first sequence's tokens is log 3 and 0, of all others 0.
TEST(ExperienceMath, CorrectionFillsWeightsAndRejects) {
  Experience e = experience();
  e.sequences[0].old_log_prob[0] += std::log(3.f);
  const std::vector<Rejection> rejections = rejections_from("token_k2", "0.5").value();
  const Metrics metrics =
      correct_rollout(e, {.rollout_is = WeightLevel::token, .rejections = rejections});
  EXPECT_EQ(e.sequences[0].rollout_is_weights, (std::vector<float>{2, 1}));
  EXPECT_EQ(e.sequences[0].rejected, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(e.sequences[3].rejected, (std::vector<std::uint8_t>{0, 0, 0, 0}));
  EXPECT_EQ(rows_of(e.sequences).valid_entries(), 9);
  EXPECT_EQ(tokens_before_rejection(e.sequences), 10);
  EXPECT_NEAR(metrics.at("rollout_corr/rollout_rs_masked_fraction"), 0.1, 1e-9);
}

// Scores 1, 0, 0.5, 0.5 squared: two thirds of the draws are the first sequence, none the second.
TEST(ExperienceMath, PfPpoDrawsSequencesByTheirScores) {
  Experience e = experience();
  std::map<std::pair<int, int>, int> drawn;
  for (e.step = 1; e.step <= 500; ++e.step) {
    const Experience again = resampled(e, {.enable = true}, 3);
    ASSERT_EQ(again.sequences.size(), 4U);
    for (const Sequence& s : again.sequences) ++drawn[{s.prompt_index, s.sample_index}];
  }
  EXPECT_NEAR((drawn[{0, 0}]) / 2000.0, 2.0 / 3, 0.04);
  EXPECT_NEAR((drawn[{1, 1}]) / 2000.0, 1.0 / 6, 0.03);
  EXPECT_EQ((drawn[{0, 1}]), 0);
  EXPECT_EQ(resampled(e, {}, 3), resampled(e, {}, 3));
  EXPECT_FALSE(resampled(e, {}, 3) == resampled(e, {}, 4));
}

}  // namespace
}  // namespace tessera
