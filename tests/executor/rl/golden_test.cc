// Verl's golden vectors of statistics, aggregation, KL, the actor's and the critic's objective, in
// the form of the file (padded, masked) and, where losses are concerned, as the executor holds it
// (ragged rows).
#include <gtest/gtest.h>

#include <set>

#include "tests/executor/rl/golden_options.h"
#include "tests/executor/rl/reference_logits.h"

namespace tessera {
namespace {

using namespace golden;

ActorOptions actor_of(const Json& options) {
  const auto type = kl_penalty_from(options["kl_loss_type"].get<std::string>());
  EXPECT_TRUE(type.has_value()) << options.dump();
  return {.policy = policy_of(options, options["loss_mode"].get<std::string>()),
          .entropy_coeff = options["entropy_coeff"].get<double>(),
          .use_kl_loss = options["use_kl_loss"].get<bool>(),
          .kl_loss_coef = options["kl_loss_coef"].get<double>(),
          .kl_loss_type = type.value_or(KlPenalty{})};
}

TEST(Golden, MaskedStatistics) {
  for_each_case("masked_ops", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Rows rows = padded_rows(in["mask"]);
    const Array values = flatten(in["values"]);
    const Json& want = item["expected"];
    expect_scalar(masked_sum(rows, values), want["sum"], tolerance, "sum");
    expect_array(masked_sum_rows(rows, values), want["sum_rows"], tolerance, "sum_rows");
    expect_scalar(masked_mean(rows, values), want["mean"], tolerance, "mean");
    expect_array(masked_mean_rows(rows, values), want["mean_rows"], tolerance, "mean_rows");
    expect_scalar(masked_variance(rows, values), want["var"], tolerance, "var");
    expect_scalar(masked_variance(rows, values, false), want["var_biased"], tolerance, "biased");
    expect_array(masked_whiten(rows, values), flatten(want["whitened"]), tolerance, "whitened",
                 &rows);
    expect_array(masked_whiten(rows, values, false), flatten(want["whitened_keep_mean"]), tolerance,
                 "whitened_keep_mean", &rows);
  });
}

TEST(Golden, AggregationModes) {
  for_each_case("agg_loss", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Rows rows = padded_rows(in["loss_mask"]);
    const Array values = flatten(in["loss_mat"]);
    const Aggregation aggregation = aggregation_of(in["options"]);
    expect_scalar(aggregate(rows, values, aggregation), item["expected"]["loss"], tolerance,
                  "loss");
    expect_array(aggregation_weights(rows, aggregation), flatten(item["expected_grad"]["loss_mat"]),
                 tolerance, "loss_mat");
    const Trimmed ragged = trim(rows);
    expect_scalar(aggregate(ragged.rows, ragged.of(values), aggregation), item["expected"]["loss"],
                  tolerance, "ragged loss");
  });
}

TEST(Golden, ActorObjective) {
  std::set<std::string> modes;
  for_each_case(
      "actor_objective", [&](const Json& in, const Json& item, const Tolerance& tolerance) {
        const Rows rows = padded_rows(in["response_mask"]);
        const Inputs inputs(in);
        modes.insert(in["options"]["loss_mode"].get<std::string>());
        const Trimmed ragged = trim(rows);
        const Inputs shorter = inputs.trimmed(ragged);
        const ActorOptions options = actor_of(in["options"]);
        const Aggregation aggregation = aggregation_of(in["options"]);
        const Json& want = item["expected"];
        const Array log_prob = flatten(item["expected_grad"]["log_prob"]);
        const Array entropy = flatten(item["expected_grad"]["entropy"]);

        const ActorLoss got = actor_objective(inputs.batch(rows), options, aggregation);
        expect_scalar(got.value, want["loss"], tolerance, "loss");
        expect_metrics(got.metrics, want["metrics"], tolerance, "actor/", "metrics");
        expect_array(got.log_prob_gradient, log_prob, tolerance, "log_prob");
        expect_array(got.entropy_gradient, entropy, tolerance, "entropy");

        const ActorLoss again = actor_objective(shorter.batch(ragged.rows), options, aggregation);
        expect_scalar(again.value, want["loss"], tolerance, "ragged loss");
        expect_array(again.log_prob_gradient, ragged.of(log_prob), tolerance, "ragged log_prob");
        expect_array(again.entropy_gradient, ragged.of(entropy), tolerance, "ragged entropy");
      });
  EXPECT_TRUE(modes.contains("vanilla"));
}

TEST(Golden, ValueLoss) {
  for_each_case("value_loss", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Rows rows = padded_rows(in["response_mask"]);
    const Loss got =
        value_loss(rows, flatten(in["vpreds"]), flatten(in["values"]), flatten(in["returns"]),
                   in["options"]["cliprange_value"].get<double>(), aggregation_of(in["options"]));
    expect_scalar(got.value, item["expected"]["loss"], tolerance, "loss");
    expect_metrics(got.metrics, item["expected"]["metrics"], tolerance, "critic/", "metrics");
    expect_array(got.gradient, flatten(item["expected_grad"]["vpreds"]), tolerance, "gradient");
  });
}

TEST(Golden, KlEstimators) {
  for_each_case("kl_penalty", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const auto penalty = kl_penalty_from(in["options"]["kl_penalty"].get<std::string>());
    ASSERT_TRUE(penalty.has_value());
    const Array log_prob = flatten(in["log_prob"]), ref = flatten(in["ref_log_prob"]);
    Array value, slope;
    for (std::size_t i = 0; i < log_prob.size(); ++i) {
      const ValueAndSlope kl = kl_penalty(*penalty, log_prob[i], ref[i]);
      value.push_back(kl.value);
      slope.push_back(kl.slope);
    }
    expect_array(value, flatten(item["expected"]["kld"]), tolerance, "kld");
    expect_array(slope, flatten(item["expected_grad"]["log_prob"]), tolerance, "gradient");
  });
}

KlController controller_of(const Json& options) {
  return {.adaptive = options["type"] == "adaptive",
          .coef = options["kl_coef"].get<double>(),
          .target_kl = options.value("target_kl", 0.1),
          .horizon = options.value("horizon", 10000.0)};
}

TEST(Golden, KlController) {
  for_each_case("kl_controller", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    KlController controller = controller_of(in["options"]);
    Array values{controller.coef};
    for (std::size_t i = 0; i < in["current_kl"].size(); ++i) {
      controller.update(in["current_kl"][i].get<double>(), in["n_steps"][i].get<std::int64_t>());
      values.push_back(controller.coef);
    }
    expect_array(values, item["expected"]["values"].get<Array>(), tolerance, "values");
  });
}

TEST(Golden, KlInTheReward) {
  for_each_case("kl_in_reward", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Array scores = flatten(in["token_level_scores"]);
    const Array old_log_prob = flatten(in["old_log_probs"]), ref = flatten(in["ref_log_prob"]);
    const Json& want = item["expected"];
    if (!in.contains("response_mask")) {  // compute_rewards: plain k1 on every entry
      const Rows rows{.begin = {0, static_cast<std::int64_t>(scores.size())}};
      KlController fixed{.coef = in["options"]["kl_ratio"].get<double>()};
      expect_array(subtract_kl(rows, scores, old_log_prob, ref, KlPenalty{}, fixed).rewards,
                   flatten(want["token_level_rewards"]), tolerance, "rewards");
      return;
    }
    const auto penalty = kl_penalty_from(in["options"]["kl_penalty"].get<std::string>());
    ASSERT_TRUE(penalty.has_value());
    KlController controller = controller_of(in["options"]);
    const PenalizedRewards got = subtract_kl(padded_rows(in["response_mask"]), scores, old_log_prob,
                                             ref, *penalty, controller);
    expect_array(got.rewards, flatten(want["token_level_rewards"]), tolerance, "rewards");
    expect_metrics(got.metrics, want["metrics"], tolerance, "actor/", "metrics");
    expect_scalar(controller.coef, want["kl_coef_after"], tolerance, "kl_coef_after");
  });
}

/// Rows `which` of a padded batch.
Trimmed select(const Rows& rows, const Json& which) {
  Trimmed part;
  part.rows.padded_width = rows.width();
  for (const Json& row : which) {
    for (std::int64_t i = rows.begin[row.get<std::size_t>()];
         i < rows.begin[row.get<std::size_t>() + 1]; ++i) {
      part.kept.push_back(static_cast<std::size_t>(i));
      part.rows.mask.push_back(rows.valid(i) ? 1 : 0);
    }
    part.rows.begin.push_back(static_cast<std::int64_t>(part.kept.size()));
  }
  return part;
}

TEST(Golden, MicroBatchesAndRanksAddUpToTheWholeBatch) {
  for_each_case(
      "micro_batch_scaling", [](const Json& in, const Json& item, const Tolerance& tolerance) {
        const Rows rows = padded_rows(in["response_mask"]);
        const Inputs inputs(in);
        const PolicyLossOptions options = policy_of(in["options"], "vanilla");
        Aggregation aggregation = aggregation_of(in["options"]);
        const Json& ranks = in["rows_of_rank_and_micro_batch"];
        const auto dp = static_cast<double>(ranks.size());
        Array gradient(inputs.log_prob.size(), 0.0);
        double mean = 0;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
          for (std::size_t micro = 0; micro < ranks[rank].size(); ++micro) {
            const Trimmed part = select(rows, ranks[rank][micro]);
            const Inputs some = inputs.trimmed(part);
            const Loss loss = policy_loss(some.batch(part.rows), options, aggregation);
            expect_scalar(loss.value, item["expected"]["micro_losses"][rank][micro], tolerance,
                          "micro loss");
            mean += loss.value / dp;
            for (std::size_t i = 0; i < part.kept.size(); ++i) {
              gradient[part.kept[i]] += loss.gradient[i] / dp;
            }
          }
        }
        expect_scalar(mean, item["expected"]["loss"], tolerance, "loss");
        expect_array(gradient, flatten(item["expected_grad"]["log_prob"]), tolerance, "gradient");
        aggregation.dp_size = 1;
        expect_scalar(policy_loss(inputs.batch(rows), options, aggregation).value,
                      item["expected"]["loss"], tolerance, "whole batch");
      });
}

TEST(Golden, LogitStatistics) {
  for_each_case("logits", [](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Rows rows = padded_rows(in["response_mask"]);
    const Array weights = aggregation_weights(rows, aggregation_of(in["options"]));
    Array log_prob, entropy, squares, gradient, want_gradient;
    for (std::size_t b = 0; b < in["logits"].size(); ++b) {
      for (std::size_t t = 0; t < in["logits"][b].size(); ++t) {
        const Array logits = in["logits"][b][t].get<Array>();
        const auto label = in["labels"][b][t].get<std::int64_t>();
        const LogitStatistics got = logit_statistics(logits, label);
        Array slope(logits.size(), 0.0);
        add_logit_gradient(logits, label, 0, weights[log_prob.size()], slope);
        log_prob.push_back(got.log_prob);
        entropy.push_back(got.entropy);
        squares.push_back(got.sum_pi_squared);
        gradient.insert(gradient.end(), slope.begin(), slope.end());
        const Array want = item["expected_grad"]["logits"][b][t].get<Array>();
        want_gradient.insert(want_gradient.end(), want.begin(), want.end());
      }
    }
    const Json& want = item["expected"];
    expect_array(log_prob, flatten(want["log_prob"]), tolerance, "log_prob");
    expect_array(entropy, flatten(want["entropy"]), tolerance, "entropy");
    expect_array(squares, flatten(want["sum_pi_squared"]), tolerance, "sum_pi_squared");
    expect_scalar(weighted_sum(weights, entropy), want["entropy_loss"], tolerance, "entropy_loss");
    expect_array(gradient, want_gradient, tolerance, "gradient");
  });
}

}  // namespace
}  // namespace tessera
