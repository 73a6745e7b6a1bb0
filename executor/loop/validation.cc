#include "executor/loop/validation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "executor/rl/validation_metrics.h"

namespace tessera {
namespace {

constexpr std::uint64_t kOwnNumbers = 0x76616c6964617465;  // apart from the draws of training

std::vector<TokenPrompt> prompts_of(const PromptSet& set, const ValidationConfig& config) {
  const auto count = static_cast<std::int64_t>(set.prompts.size());
  return prompts_at(set, 0, count, static_cast<std::int32_t>(config.samples));
}

ValidationSample sample_of(const PromptSet& set, const Sequence& sequence,
                           const ResponseScores* scores) {
  ValidationSample sample{.data_source = prompt_of(set, sequence).data_source,
                          .uid = sequence.uid,
                          .values = {{"reward", sequence.score}},
                          .answer = {}};
  if (scores == nullptr) return sample;
  sample.answer = scores->detail.answer;
  for (const auto& [name, value] : scores->detail.more) sample.values.emplace(name, value);
  if (scores->detail.accuracy) sample.values["acc"] = *scores->detail.accuracy;
  for (std::size_t f = 0; f < set.rewards.size() && set.rewards.size() > 1; ++f) {
    const double score = scores->by_function[f];
    if (!std::isnan(score)) sample.values[set.rewards[f].name] = score;
  }
  return sample;
}

/// Where answers say an accuracy, one that no score was to be had of has 0, as in verl's manager
/// `limited`: it would be missing from the mean.
void add_failed(std::span<const ResponseScores> scores, std::vector<ValidationSample>& samples) {
  const auto said = [](const ValidationSample& sample) { return sample.values.contains("acc"); };
  if (std::ranges::none_of(samples, said)) return;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto failed = [](double score) { return std::isnan(score); };
    if (std::ranges::any_of(scores[i].by_function, failed)) samples[i].values.try_emplace("acc", 0);
  }
}

}  // namespace

Validation validate(const RolloutSetting& setting, std::int64_t step) {
  const ValidationConfig& config = setting.config.validation;
  RolloutOptions options = setting.options;
  options.sampling = config.sampling;
  options.seed ^= kOwnNumbers;
  options.note_experts = options.measure_order = false;
  const RoleWorker& rollout = *setting.worker.find(Role::rollout);
  std::unique_ptr<RolloutEngine> engine;
  if (rollout.weights != nullptr) {  // else others generate, or servers
    engine = std::make_unique<RolloutEngine>(*rollout.weights, rollout.groups,
                                             sum_order(setting.config.rollout));
  }
  Metrics unreported;  // figures of the passes
  Experience answers{.step = step};
  answers.sequences = generate_on_replicas(
      setting, engine.get(), step, prompts_of(setting.prompts, config), options, unreported);
  Validation made;
  RolloutSetting scoring = setting;
  scoring.stop = [&] {
    made.whole = !(setting.stop && setting.stop());
    return !made.whole;
  };
  std::vector<ResponseScores> scores;
  score_sequences(scoring, answers, &scores);
  if (!made.whole) return made;
  std::vector<ValidationSample> samples;
  for (std::size_t i = 0; i < answers.sequences.size(); ++i) {
    samples.push_back(
        sample_of(setting.prompts, answers.sequences[i], scores.empty() ? nullptr : &scores[i]));
  }
  add_failed(scores, samples);
  made.sequences = std::move(answers.sequences);
  made.metrics = validation_metrics(samples);
  return made;
}

}  // namespace tessera
