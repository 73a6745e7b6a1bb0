#include "executor/config/run_config_correction.h"

#include <array>
#include <string>

#include "executor/config/run_config_readers.h"

namespace tessera {
namespace {

/// A threshold is a number or a text such as "0.5_2.0"; the text of either.
std::string text_of(ObjectReader& reader, std::string_view key) {
  const Node* const given = reader.find(key);
  if (given == nullptr || given->is(Node::Kind::null)) return {};
  if (given->is(Node::Kind::string)) return given->text;
  double number = 0;
  reader.optional(key, number, kAboveZero);
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.17g", number);
  return digits.data();
}

void read_weights(ObjectReader& reader, RolloutCorrection& correction) {
  std::string level;
  reader.optional("rollout_is", level);
  if (level == "token") {
    correction.rollout_is = WeightLevel::token;
  } else if (level == "sequence") {
    correction.rollout_is = WeightLevel::sequence;
  } else if (!level.empty()) {
    reader.refuse("rollout_is", "token, sequence or null");
  }
  const std::string bounds = text_of(reader, "rollout_is_threshold");
  if (!bounds.empty()) {
    const std::optional<WeightBounds> read = weight_bounds_from(bounds);
    if (read) {
      correction.bounds = *read;
    } else {
      reader.refuse("rollout_is_threshold", "a number above 0, or \"low_high\"");
    }
  }
  reader.optional("rollout_is_batch_normalize", correction.batch_normalize);
}

void read_rejections(ObjectReader& reader, RolloutCorrection& correction) {
  std::string options;
  reader.optional("rollout_rs", options);
  const std::string thresholds = text_of(reader, "rollout_rs_threshold");
  if (options.empty()) return;
  std::optional<std::vector<Rejection>> rejections = rejections_from(options, thresholds);
  if (rejections) {
    correction.rejections = std::move(*rejections);
  } else {
    reader.refuse(
        "rollout_rs",
        "token_k1 to k3, seq_sum_k1 to k3, seq_mean_k1 to k3, seq_max_k2 or k3, separated "
        "by commas, and as many rollout_rs_threshold or one",
        "k1 takes \"low_high\" or a number, the others a number");
  }
}

}  // namespace

void read_rollout_correction(ObjectReader& parent, AlgorithmConfig& algorithm) {
  auto reader = parent.object("rollout_correction", false);
  if (!reader) return;
  RolloutCorrection correction;
  read_weights(*reader, correction);
  read_rejections(*reader, correction);
  reader->optional("bypass_mode", algorithm.bypass_mode);
  std::string loss = "ppo_clip";
  reader->optional("loss_type", loss);
  if (loss != "ppo_clip" && loss != "reinforce") {
    reader->refuse("loss_type", "ppo_clip or reinforce");
  }
  algorithm.bypass_loss = loss == "reinforce" ? BypassLoss::reinforce : BypassLoss::ppo_clip;
  if (algorithm.bypass_mode && algorithm.advantage.estimator->reads_sum_pi_squared) {
    reader->refuse("bypass_mode",
                   "false: the estimator reads probabilities that the bypass does not compute");
  }
  algorithm.rollout_correction = std::move(correction);
  reader->refuse_unknown_keys();
}

}  // namespace tessera
