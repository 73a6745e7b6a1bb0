// What the options of a golden case are in this program's values.
#pragma once

#include <algorithm>
#include <array>

#include "executor/losses/losses.h"
#include "tests/executor/rl/golden.h"

namespace tessera::golden {

inline Aggregation aggregation_of(const Json& options) {
  constexpr std::array kModes{
      AggregationMode::token_mean, AggregationMode::token_sum, AggregationMode::seq_mean_token_sum,
      AggregationMode::seq_mean_token_mean, AggregationMode::seq_mean_token_sum_norm};
  const auto name = options.at("loss_agg_mode").get<std::string>();
  const auto mode = std::find_if(kModes.begin(), kModes.end(),
                                 [&](AggregationMode each) { return name_of(each) == name; });
  EXPECT_NE(mode, kModes.end()) << options.dump();
  return {.mode = mode == kModes.end() ? AggregationMode::token_mean : *mode,
          .batch_num_tokens = optional<std::int64_t>(options, "batch_num_tokens"),
          .global_batch_size = optional<std::int64_t>(options, "global_batch_size"),
          .dp_size = optional<std::int64_t>(options, "dp_size").value_or(1),
          .loss_scale_factor = optional<double>(options, "loss_scale_factor")};
}

/// A number or text as verl's parsers take either.
inline std::string threshold_text(const Json& options, const char* key, const char* otherwise) {
  if (!options.contains(key) || options[key].is_null()) return otherwise;
  return options[key].is_string() ? options[key].get<std::string>() : options[key].dump();
}

inline RolloutCorrection correction_of(const Json& options) {
  RolloutCorrection correction;
  const std::string level = optional<std::string>(options, "rollout_is").value_or("");
  if (level == "token") correction.rollout_is = WeightLevel::token;
  if (level == "sequence") correction.rollout_is = WeightLevel::sequence;
  const auto bounds = weight_bounds_from(threshold_text(options, "rollout_is_threshold", "2.0"));
  EXPECT_TRUE(bounds.has_value()) << options.dump();
  correction.bounds = bounds.value_or(WeightBounds{});
  correction.batch_normalize = options.value("rollout_is_batch_normalize", false);
  if (const auto names = optional<std::string>(options, "rollout_rs")) {
    const auto rejections =
        rejections_from(*names, threshold_text(options, "rollout_rs_threshold", ""));
    EXPECT_TRUE(rejections.has_value()) << options.dump();
    correction.rejections = rejections.value_or(std::vector<Rejection>{});
  }
  return correction;
}

/// Of the loss `name`, with the options that the case states.
inline PolicyLossOptions policy_of(const Json& options, const std::string& name) {
  const auto loss = std::find_if(kPolicyLosses.begin(), kPolicyLosses.end(),
                                 [&](const PolicyLoss* each) { return each->name == name; });
  EXPECT_NE(loss, kPolicyLosses.end()) << name;
  PolicyLossOptions policy;
  if (loss != kPolicyLosses.end()) policy.loss = *loss;
  const auto read = [&](const char* key, double& value) {
    value = optional<double>(options, key).value_or(value);
  };
  // The names of verl's deprecated function, and those of its configuration.
  for (const std::string prefix : {"cliprange", "clip_ratio"}) {
    if (!options.contains(prefix)) continue;
    policy.clip_ratio = options[prefix].get<double>();
    policy.clip_ratio_low = optional<double>(options, (prefix + "_low").c_str());
    policy.clip_ratio_high = optional<double>(options, (prefix + "_high").c_str());
  }
  read("clip_ratio_c", policy.clip_ratio_c);
  read("dro_beta", policy.dro_beta);
  read("clip_cov_ratio", policy.clip_cov_ratio);
  read("clip_cov_lb", policy.clip_cov_lb);
  read("clip_cov_ub", policy.clip_cov_ub);
  read("kl_cov_ratio", policy.kl_cov_ratio);
  read("ppo_kl_coef", policy.ppo_kl_coef);
  read("tau_pos", policy.tau_pos);
  read("tau_neg", policy.tau_neg);
  if (options.contains("rollout_correction")) {
    const Json& correction = options["rollout_correction"];
    policy.correction = correction_of(correction);
    policy.bypass =
        correction["loss_type"] == "reinforce" ? BypassLoss::reinforce : BypassLoss::ppo_clip;
  }
  return policy;
}

/// The per-token inputs of a case, flat.
struct Inputs {
  Array log_prob, old_log_prob, ref_log_prob, advantages, entropy, weights, draws;

  explicit Inputs(const Json& inputs) {
    const auto read = [&](const char* key) {
      return inputs.contains(key) ? flatten(inputs[key]) : Array{};
    };
    log_prob = read("log_prob");
    old_log_prob = read("old_log_prob");
    ref_log_prob = read("ref_log_prob");
    advantages = read("advantages");
    entropy = read("entropy");
    weights = read("rollout_is_weights");
  }
  Inputs trimmed(const Trimmed& by) const {
    Inputs result = *this;
    for (Array* array : {&result.log_prob, &result.old_log_prob, &result.ref_log_prob,
                         &result.advantages, &result.entropy, &result.weights, &result.draws}) {
      if (!array->empty()) *array = by.of(*array);
    }
    return result;
  }
  PolicyBatch batch(const Rows& rows) const {
    return {.rows = rows,
            .log_prob = log_prob,
            .old_log_prob = old_log_prob,
            .advantages = advantages,
            .rollout_is_weights = weights,
            .ref_log_prob = ref_log_prob,
            .entropy = entropy,
            .draws = draws};
  }
};

/// Runs `check(inputs, case, tolerance)` for each case and fails when the file holds none.
template <class Check>
void for_each_case(const std::string& file, Check check) {
  const Json data = load(file);
  EXPECT_FALSE(data["cases"].empty()) << file;
  for (const Json& item : data["cases"]) {
    SCOPED_TRACE(file + "/" + item["name"].get<std::string>());
    check(item["inputs"], item, Tolerance(data));
  }
}

}  // namespace tessera::golden
