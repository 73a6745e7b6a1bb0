// Verl's golden vectors of every advantage estimator, padded and, where nothing but valid entries
// matters, as ragged rows.
#include <gtest/gtest.h>

#include "executor/estimators/estimators.h"
#include "tests/executor/rl/golden_options.h"

namespace tessera {
namespace {

using namespace golden;

struct Family {
  const char* file;
  const Estimator* estimator;
};
std::string name_of_family(const testing::TestParamInfo<Family>& info) { return info.param.file; }

class GoldenAdvantages : public testing::TestWithParam<Family> {};

std::vector<std::string> texts_of(const Json& values) {
  std::vector<std::string> texts;
  for (const Json& x : values) texts.push_back(x.is_string() ? x.get<std::string>() : x.dump());
  return texts;
}

/// "uid_session_index".
std::vector<SessionOutput> outputs_of(const Json& keys) {
  std::vector<SessionOutput> outputs;
  for (const std::string& key : texts_of(keys)) {
    const std::size_t last = key.rfind('_');
    outputs.push_back({key.substr(0, last), std::stoll(key.substr(last + 1))});
  }
  return outputs;
}

/// Everything that an estimator may read, flat.
struct Given {
  Array rewards, values, old_log_prob, sum_pi_squared, weights, greedy;
  std::vector<std::string> uid;
  std::vector<SessionOutput> outputs;
  std::vector<Array> components;

  explicit Given(const Json& in) {
    const auto read = [&](const char* key) {
      return in.contains(key) ? flatten(in[key]) : Array{};
    };
    rewards = read("token_level_rewards");
    values = read("values");
    old_log_prob = read("old_log_probs");
    sum_pi_squared = read("sum_pi_squared");
    weights = read("rollout_is_weights");
    if (in.contains("reward_baselines")) greedy = in["reward_baselines"].get<Array>();
    if (in.contains("uid")) uid = texts_of(in["uid"]);
    if (in.contains("keys")) outputs = outputs_of(in["keys"]);
    if (in.contains("reward_components")) {
      for (const Json& key : in["options"]["gdpo_reward_keys"]) {
        components.push_back(in["reward_components"][key.get<std::string>()].get<Array>());
      }
      rewards.assign(flatten(in["response_mask"]).size(), 0.0);
    }
  }
  EstimatorInput input(const Rows& rows) const {
    return {.rows = rows,
            .rewards = rewards,
            .uid = uid,
            .values = values,
            .old_log_prob = old_log_prob,
            .sum_pi_squared = sum_pi_squared,
            .rollout_is_weights = weights,
            .greedy_scores = greedy,
            .components = components,
            .outputs = outputs};
  }
};

AdvantageOptions options_of(const Json& options, const Estimator* estimator) {
  AdvantageOptions result{.estimator = estimator};
  result.gamma = options.value("gamma", 1.0);
  result.lam = options.value("lam", 1.0);
  result.norm_adv_by_std_in_grpo = options.value("norm_adv_by_std_in_grpo", true);
  result.f_norm = options.value("f_norm", 1.0);
  result.handle_zero_tail = options.value("handle_zero_tail", true);
  if (options.contains("gdpo_reward_weights") && !options["gdpo_reward_weights"].is_null()) {
    result.gdpo_reward_weights = options["gdpo_reward_weights"].get<std::vector<double>>();
  }
  return result;
}

TEST_P(GoldenAdvantages, EveryCase) {
  const Json compare = load(GetParam().file)["compare"];
  for_each_case(GetParam().file, [&](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Rows rows = padded_rows(in["response_mask"]);
    const Given given(in);
    const AdvantageOptions options = options_of(in["options"], GetParam().estimator);
    const Advantages got = GetParam().estimator->compute(given.input(rows), options);
    const Json& want = item["expected"];
    const auto within = [&](const char* name) { return compare[name] == "mask" ? &rows : nullptr; };
    expect_array(got.advantages, flatten(want["advantages"]), tolerance, "advantages",
                 within("advantages"));
    expect_array(got.returns, flatten(want["returns"]), tolerance, "returns", within("returns"));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Verl, GoldenAdvantages,
    testing::Values(Family{"adv_gae", &kGae}, Family{"adv_grpo", &kGrpo},
                    Family{"adv_grpo_vectorized", &kGrpoVectorized},
                    Family{"adv_grpo_passk", &kGrpoPassk},
                    Family{"adv_grpo_multi_trajectory", &kGrpo}, Family{"adv_gdpo", &kGdpo},
                    Family{"adv_rloo", &kRloo}, Family{"adv_rloo_vectorized", &kRlooVectorized},
                    Family{"adv_opo", &kOpo},
                    Family{"adv_reinforce_plus_plus", &kReinforcePlusPlus},
                    Family{"adv_reinforce_plus_plus_baseline", &kReinforcePlusPlusBaseline},
                    Family{"adv_remax", &kRemax}, Family{"adv_gpg", &kGpg},
                    Family{"adv_optimal_token_baseline", &kOptimalTokenBaseline},
                    Family{"adv_tir_optimal_token_baseline", &kTirOptimalTokenBaseline}),
    name_of_family);

TEST(Estimators, PassAtKNeedsTwoSamples) {
  const Rows rows{.begin = {0, 1, 2}};
  const Array rewards{1, 0};
  const std::vector<std::string> uid{"a", "b"};
  EXPECT_ANY_THROW(kGrpoPassk.compute({.rows = rows, .rewards = rewards, .uid = uid}, {}));
}

}  // namespace
}  // namespace tessera
