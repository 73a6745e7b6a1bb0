#include "executor/estimators/experience_math.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "executor/rl/sampling.h"

namespace tessera {
namespace {

double mean_of(View values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Unbiased, as torch.var; 0 for fewer than two.
double variance_of(View values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return squares / static_cast<double>(values.size() - 1);
}

void report(Metrics& metrics, const std::string& name, View values) {
  if (values.empty()) return;
  metrics[name + "/mean"] = mean_of(values);
  metrics[name + "/max"] = *std::max_element(values.begin(), values.end());
  metrics[name + "/min"] = *std::min_element(values.begin(), values.end());
}

void report_lengths(Metrics& metrics, const std::string& name, View lengths, std::int64_t limit) {
  report(metrics, name, lengths);
  if (limit <= 0 || lengths.empty()) return;
  const auto at_limit = std::count(lengths.begin(), lengths.end(), static_cast<double>(limit));
  metrics[name + "/clip_ratio"] =
      static_cast<double>(at_limit) / static_cast<double>(lengths.size());
}

bool filled(const Experience& experience, std::vector<float> Sequence::*field) {
  return std::all_of(experience.sequences.begin(), experience.sequences.end(),
                     [&](const Sequence& s) { return (s.*field).size() == s.response.size(); });
}

/// The valid entries of a field.
Array valid_values(const Experience& experience, std::vector<float> Sequence::*field) {
  if (!filled(experience, field)) return {};
  const Rows rows = rows_of(experience.sequences);
  const Array all = flat(experience.sequences, field);
  Array values;
  for (std::int64_t i = 0; i < rows.entries(); ++i) {
    if (rows.valid(i)) values.push_back(all[static_cast<std::size_t>(i)]);
  }
  return values;
}

void report_values(Metrics& metrics, const Experience& experience) {
  const Array values = valid_values(experience, &Sequence::values);
  const Array returns = valid_values(experience, &Sequence::returns);
  report(metrics, "critic/values", values);
  if (values.empty() || values.size() != returns.size()) return;
  Array errors;
  for (std::size_t i = 0; i < values.size(); ++i) errors.push_back(returns[i] - values[i]);
  metrics["critic/vf_explained_var"] = 1 - variance_of(errors) / (variance_of(returns) + 1e-5);
}

void report_probability_difference(Metrics& metrics, const Experience& experience) {
  const Array rollout = valid_values(experience, &Sequence::rollout_log_prob);
  const Array old = valid_values(experience, &Sequence::old_log_prob);
  if (rollout.empty() || rollout.size() != old.size()) return;
  Array difference;
  for (std::size_t i = 0; i < old.size(); ++i) {
    difference.push_back(std::abs(std::exp(rollout[i]) - std::exp(old[i])));
  }
  metrics["training/rollout_probs_diff_max"] =
      *std::max_element(difference.begin(), difference.end());
  metrics["training/rollout_probs_diff_mean"] = mean_of(difference);
  metrics["training/rollout_probs_diff_std"] = std::sqrt(variance_of(difference));
}

/// The part of the responses beside which no other one to the same prompt has another score; with
/// one response to each prompt 1 where all of the step score alike, else 0.
double equal_share(const Experience& experience) {
  struct Scored {
    double first = 0;
    std::int64_t count = 0;
    bool equal = true;
  };
  std::map<std::string_view, Scored> groups;
  bool alike = true;
  for (const Sequence& s : experience.sequences) {
    Scored& group = groups.try_emplace(s.uid, Scored{.first = s.score}).first->second;
    ++group.count;
    group.equal = group.equal && s.score == group.first;
    alike = alike && s.score == experience.sequences.front().score;
  }
  if (groups.size() == experience.sequences.size()) return alike ? 1 : 0;
  std::int64_t equal = 0;
  for (const auto& [uid, group] : groups) equal += group.equal ? group.count : 0;
  return static_cast<double>(equal) / static_cast<double>(experience.sequences.size());
}

}  // namespace

void place_scores(Experience& experience) {
  for (Sequence& s : experience.sequences) {
    s.token_rewards.assign(s.response.size(), 0.f);
    if (!s.token_rewards.empty()) s.token_rewards.back() = static_cast<float>(s.score);
  }
}

Metrics subtract_kl(Experience& experience, KlPenalty penalty, KlController& controller) {
  const std::span<Sequence> sequences = experience.sequences;
  PenalizedRewards penalized =
      subtract_kl(rows_of(sequences), flat(sequences, &Sequence::token_rewards),
                  flat(sequences, &Sequence::old_log_prob),
                  flat(sequences, &Sequence::ref_log_prob), penalty, controller);
  store(penalized.rewards, sequences, &Sequence::token_rewards);
  return std::move(penalized.metrics);
}

Metrics correct_rollout(Experience& experience, const RolloutCorrection& options) {
  const std::span<Sequence> sequences = experience.sequences;
  const Rows rows = rows_of(sequences);
  Correction correction = correct_rollout(rows, flat(sequences, &Sequence::old_log_prob),
                                          flat(sequences, &Sequence::rollout_log_prob), options);
  if (!correction.weights.empty()) {
    store(correction.weights, sequences, &Sequence::rollout_is_weights);
  }
  for (std::size_t row = 0; row < sequences.size(); ++row) {
    std::vector<std::uint8_t> rejected;
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      const bool kept = correction.kept[static_cast<std::size_t>(i)] != 0;
      rejected.push_back(rows.valid(i) && !kept ? 1 : 0);
    }
    if (!options.rejections.empty()) sequences[row].rejected = std::move(rejected);
  }
  return std::move(correction.metrics);
}

void compute_advantages(Experience& experience, const AdvantageOptions& options) {
  const std::span<Sequence> sequences = experience.sequences;
  const Estimator& estimator = *options.estimator;
  const auto field = [&](bool read, std::vector<float> Sequence::*which) {
    return read ? flat(sequences, which) : Array{};
  };
  const bool squares = estimator.reads_sum_pi_squared;
  const bool weights = squares && filled(experience, &Sequence::rollout_is_weights);
  const Rows rows = rows_of(sequences);
  const Array rewards = flat(sequences, &Sequence::token_rewards);
  const Array values = field(estimator.reads_values, &Sequence::values);
  const Array old_log_prob = field(squares, &Sequence::old_log_prob);
  const Array sum_pi_squared = field(squares, &Sequence::sum_pi_squared);
  const Array rollout_is_weights = field(weights, &Sequence::rollout_is_weights);
  std::vector<std::string> uid;
  Array greedy;
  std::vector<Array> components(estimator.reads_components ? options.gdpo_reward_keys.size() : 0);
  for (const Sequence& s : sequences) {
    uid.push_back(s.uid);
    greedy.push_back(s.greedy_score);
    for (std::size_t key = 0; key < components.size(); ++key) {
      components[key].push_back(s.components.at(key));
    }
  }
  const Advantages result = estimator.compute({.rows = rows,
                                               .rewards = rewards,
                                               .uid = uid,
                                               .values = values,
                                               .old_log_prob = old_log_prob,
                                               .sum_pi_squared = sum_pi_squared,
                                               .rollout_is_weights = rollout_is_weights,
                                               .greedy_scores = greedy,
                                               .components = components},
                                              options);
  store(result.advantages, sequences, &Sequence::advantages);
  store(result.returns, sequences, &Sequence::returns);
}

Experience resampled(const Experience& experience, const PfPpo& options, std::uint64_t seed) {
  constexpr std::uint32_t kResampling = 0xffffffff;  // no sample of a prompt has this number
  Array scores, uniforms;
  for (const Sequence& s : experience.sequences) {
    scores.push_back(s.score);
    uniforms.push_back(uniform(seed, {.step = static_cast<std::uint32_t>(experience.step),
                                      .prompt = static_cast<std::uint32_t>(uniforms.size()),
                                      .sample = kResampling}));
  }
  Experience drawn{.step = experience.step};
  for (const std::int64_t row : drawn_rows(pf_ppo_weights(scores, options), uniforms)) {
    drawn.sequences.push_back(experience.sequences[static_cast<std::size_t>(row)]);
  }
  return drawn;
}

Metrics data_metrics(const Experience& experience, const LengthLimits& limits) {
  Metrics metrics;
  Array scores, rewards, responses, prompts;
  const bool has_rewards = filled(experience, &Sequence::token_rewards);
  for (const Sequence& s : experience.sequences) {
    scores.push_back(s.score);
    if (has_rewards) {
      rewards.push_back(std::accumulate(s.token_rewards.begin(), s.token_rewards.end(), 0.0));
    }
    responses.push_back(static_cast<double>(s.response.size()));
    prompts.push_back(static_cast<double>(s.prompt.size()));
  }
  report(metrics, "critic/score", scores);
  if (!scores.empty()) metrics["critic/score/equal_groups"] = equal_share(experience);
  report(metrics, "critic/rewards", rewards);
  report(metrics, "critic/advantages", valid_values(experience, &Sequence::advantages));
  report(metrics, "critic/returns", valid_values(experience, &Sequence::returns));
  report_values(metrics, experience);
  report_lengths(metrics, "response_length", responses, limits.response);
  report_lengths(metrics, "prompt_length", prompts, limits.prompt);
  report_probability_difference(metrics, experience);
  return metrics;
}

}  // namespace tessera
