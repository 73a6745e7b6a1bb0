// Verl's golden vectors of rollout correction, distillation, group filtering, overlong shaping and
// PF-PPO's buffer.
#include <gtest/gtest.h>

#include <numeric>

#include "executor/rl/filter_groups.h"
#include "executor/rl/overlong.h"
#include "executor/rl/pf_ppo.h"
#include "tests/executor/rl/golden_options.h"
#include "tests/executor/rl/reference_logits.h"

namespace tessera {
namespace {

using namespace golden;

void expect_correction(const Rows& rows, View old, View rollout, const Json& in, const Json& want,
                       const Tolerance& tolerance, const Array& mask, const Array& weights) {
  const Correction got = correct_rollout(rows, old, rollout, correction_of(in["options"]));
  const Array kept(got.kept.begin(), got.kept.end());
  expect_array(kept, mask, tolerance, "response_mask");
  expect_array(got.weights, weights, tolerance, "rollout_is_weights");
  expect_metrics(got.metrics, want["metrics"], tolerance, "rollout_corr/", "metrics");
}

TEST(Golden, RolloutCorrection) {
  for_each_case(
      "rollout_correction", [](const Json& in, const Json& item, const Tolerance& tolerance) {
        const Rows rows = padded_rows(in["response_mask"]);
        const Array old = flatten(in["old_log_prob"]), rollout = flatten(in["rollout_log_prob"]);
        const Json& want = item["expected"];
        const Array mask = flatten(want["response_mask"]);
        const Array weights =
            want.contains("rollout_is_weights") ? flatten(want["rollout_is_weights"]) : Array{};
        expect_correction(rows, old, rollout, in, want, tolerance, mask, weights);
        const Trimmed ragged = trim(rows);
        expect_correction(ragged.rows, ragged.of(old), ragged.of(rollout), in, want, tolerance,
                          ragged.of(mask), weights.empty() ? weights : ragged.of(weights));
      });
}

TEST(RolloutCorrection, ThresholdsThatVerlRefusesAreRefused) {
  for (const char* text : {"", "0", "-1", "2_1", "a", "1_", "_2", "1_2_3", "nan", "inf"}) {
    EXPECT_FALSE(weight_bounds_from(text).has_value()) << text;
  }
  EXPECT_EQ(weight_bounds_from(" 0.5_2 ")->lower, 0.5);
  for (const auto& [names, thresholds] : {std::pair{"token_k4", "1"},
                                          {"seq_max_k1", "2"},
                                          {"token_k2", "1_2"},
                                          {"token_k1", ""},
                                          {"", "1"},
                                          {"token_k1,token_k2", "1,2,3"},
                                          {"seq_k1", "1"},
                                          {"token_k1", "0.5"}}) {
    EXPECT_FALSE(rejections_from(names, thresholds).has_value()) << names << " " << thresholds;
  }
  EXPECT_EQ(rejections_from("token_k2, token_k2", "1")->size(), 1U);
}

DistillationOptions distillation_of(const Json& options) {
  const auto mode = kl_penalty_from(options["loss_mode"].get<std::string>());
  EXPECT_TRUE(mode.has_value());
  DistillationOptions result{.enabled = true, .loss_mode = mode.value_or(KlPenalty{})};
  result.loss_max_clamp = optional<double>(options, "loss_max_clamp");
  result.use_policy_gradient = options["use_policy_gradient"].get<bool>();
  result.policy = policy_of(options, "vanilla");
  return result;
}

void expect_estimator(const Json& in, const Json& item, const Tolerance& tolerance) {
  const Rows rows = padded_rows(in["response_mask"]);
  const Array log_prob = flatten(in["log_prob"]), teacher = flatten(in["teacher_log_prob"]);
  const Array old = flatten(in["old_log_prob"]);
  const Loss got = distillation_loss(
      {.rows = rows, .log_prob = log_prob, .old_log_prob = old, .ref_log_prob = teacher},
      distillation_of(in["options"]), aggregation_of(in["options"]));
  expect_scalar(got.value, item["expected"]["loss"], tolerance, "loss");
  expect_array(got.gradient, flatten(item["expected_grad"]["log_prob"]), tolerance, "gradient");
}

/// One token's divergence, and its derivative by the student's logits.
TopkDivergence topk_of(const Array& logits, const Json& ids, const Array& teacher,
                       const TopkClamps& clamps, double weight, Array& gradient) {
  Array student;
  for (const Json& id : ids) {
    student.push_back(logit_statistics(logits, id.get<std::int64_t>()).log_prob);
  }
  TopkDivergence token = forward_kl_topk(student, teacher, clamps);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    add_logit_gradient(logits, ids[k].get<std::int64_t>(), weight * token.slope[k], 0, gradient);
  }
  return token;
}

void expect_topk(const Json& in, const Json& item, const Tolerance& tolerance) {
  const Rows rows = padded_rows(in["response_mask"]);
  const Array weights = aggregation_weights(rows, aggregation_of(in["options"]));
  const TopkClamps clamps{.log_prob_min = optional<double>(in["options"], "log_prob_min_clamp"),
                          .loss_max = optional<double>(in["options"], "loss_max_clamp")};
  Array before, value, student_mass, teacher_mass;
  for (std::size_t b = 0; b < in["student_logits"].size(); ++b) {
    for (std::size_t t = 0; t < in["student_logits"][b].size(); ++t) {
      const Array logits = in["student_logits"][b][t].get<Array>();
      Array gradient(logits.size(), 0.0);
      const TopkDivergence token = topk_of(logits, in["teacher_topk_ids"][b][t],
                                           in["teacher_topk_log_probs"][b][t].get<Array>(), clamps,
                                           weights[value.size()], gradient);
      expect_array(gradient, item["expected_grad"]["student_logits"][b][t].get<Array>(), tolerance,
                   "gradient");
      before.push_back(token.before_clamps);
      value.push_back(token.value);
      student_mass.push_back(token.student_mass);
      teacher_mass.push_back(token.teacher_mass);
    }
  }
  const Json& want = item["expected"];
  expect_array(before, flatten(want["token_kl_before_clamps"]), tolerance, "token kl");
  expect_array(student_mass, flatten(want["student_mass"]), tolerance, "student mass");
  expect_array(teacher_mass, flatten(want["teacher_mass"]), tolerance, "teacher mass");
  expect_scalar(weighted_sum(weights, value), want["loss"], tolerance, "loss");
}

TEST(Golden, Distillation) {
  for_each_case("distillation", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const bool topk = in["options"]["loss_mode"] == "forward_kl_topk";
    topk ? expect_topk(in, item, tolerance) : expect_estimator(in, item, tolerance);
  });
}

TEST(Golden, GroupFilter) {
  for_each_case("filter_groups", [](const Json& in, const Json& item, const Tolerance&) {
    std::vector<std::string> kept, dropped;
    std::map<double, std::int64_t> counts;
    for (const auto& [uid, scores] : in["groups"].items()) {
      const Array values = scores.get<Array>();
      (has_signal(values) ? kept : dropped).push_back(uid);
      if (!has_signal(values)) ++counts[values.front()];
    }
    EXPECT_EQ(Json(kept), item["expected"]["kept"]);
    EXPECT_EQ(Json(dropped), item["expected"]["evicted"]);
    for (const auto& [value, count] : item["expected"]["evicted_value_counts"].items()) {
      EXPECT_EQ(counts[std::stod(value)], count.get<std::int64_t>()) << value;
    }
  });
}

TEST(FilterGroups, TwoPromptsForEachDroppedOneWithinWhatMayRun) {
  PromptCredit credit(4, {.enable = true});
  credit.dropped(3);
  EXPECT_EQ(credit.take(), 4);
  EXPECT_EQ(credit.take(), 2);
  EXPECT_EQ(credit.take(), 0);
  EXPECT_FALSE(has_signal(Array{0.1, 0.1, 0.1}));
}

TEST(Golden, OverlongShaping) {
  for_each_case("dapo_overlong", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Json& options = in["options"];
    const OverlongBuffer buffer{.enable = true,
                                .max_resp_len = options["max_resp_len"].get<std::int64_t>(),
                                .len = options["len"].get<std::int64_t>(),
                                .penalty_factor = options["penalty_factor"].get<double>()};
    Array rewards, penalties, overlong;
    for (std::size_t i = 0; i < in["scores"].size(); ++i) {
      penalties.push_back(overlong_reward(in["response_lengths"][i].get<std::int64_t>(), buffer));
      rewards.push_back(in["scores"][i].get<double>() + penalties.back());
      overlong.push_back(penalties.back() < 0 ? 1 : 0);
    }
    const Json& want = item["expected"];
    expect_array(rewards, want["rewards"].get<Array>(), tolerance, "rewards");
    expect_array(penalties, want["overlong_reward"].get<Array>(), tolerance, "overlong_reward");
    expect_array(overlong, want["overlong"].get<Array>(), tolerance, "overlong");
  });
}

TEST(Golden, PfPpoBuffer) {
  for_each_case("pf_ppo", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const std::string method = in["options"]["reweight_method"].get<std::string>();
    const PfPpo options{.enable = true,
                        .reweight_method = method == "pow"       ? PfPpoReweight::pow
                                           : method == "max_min" ? PfPpoReweight::max_min
                                                                 : PfPpoReweight::max_random,
                        .weight_pow = in["options"]["weight_pow"].get<double>()};
    Array scores;
    for (const Json& row : in["token_level_scores"]) {
      const Array rewards = row.get<Array>();
      scores.push_back(std::accumulate(rewards.begin(), rewards.end(), 0.0));
    }
    const Array weights = pf_ppo_weights(scores, options);
    const Json& want = item["expected"];
    expect_array(weights, want["weights"].get<Array>(), tolerance, "weights");
    // A number in the middle of a row's share draws that row: the shares are the probabilities.
    const Array shares = want["probabilities"].get<Array>();
    Array uniforms;
    for (const Json& row : in["drawn_rows"]) {
      const auto end = shares.begin() + row.get<std::ptrdiff_t>();
      uniforms.push_back(std::accumulate(shares.begin(), end, 0.0) + *end / 2);
    }
    const std::vector<std::int64_t> drawn = drawn_rows(weights, uniforms);
    EXPECT_EQ(drawn, in["drawn_rows"].get<std::vector<std::int64_t>>());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      EXPECT_EQ(in["uid"][static_cast<std::size_t>(drawn[i])], want["uid"][i]);
    }
  });
}

}  // namespace
}  // namespace tessera
