#include "executor/loop/step_rollout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/loop/calls.h"
#include "executor/loop/group_filter.h"
#include "executor/loop/share.h"
#include "executor/rl/sampling.h"
#include "executor/rollout/replay.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

/// The same with the rank's own engine: programs score responses while others still grow.
std::vector<Sequence> generated(const RolloutSetting& setting, std::int64_t step,
                                std::span<const TokenPrompt> prompts, Metrics& metrics) {
  Worker& worker = setting.worker;
  std::vector<TokenPrompt> expected(prompts.begin(), prompts.end());
  expect_lengths(worker.known_lengths, expected);
  std::vector<Sequence> sequences =
      generate_on_replicas(setting, worker.generation.get(), step, expected, setting.options,
                           metrics, [&](std::span<const EndedSequence> ended) {
                             score_ended(worker.rewards, setting.prompts, ended);
                           });
  remember_lengths(sequences, worker.new_lengths);
  return sequences;
}

std::vector<Sequence> replayed(const RolloutSetting& setting, std::int64_t step,
                               std::span<const TokenPrompt> prompts) {
  Problems problems;
  const std::string file = setting.config.trainer.rollout_replay;
  if (step > static_cast<std::int64_t>(setting.recorded.size())) {
    throw Error(ExitCode::bad_input, {Problem{.file = file,
                                              .place = "step " + std::to_string(step),
                                              .found = "no sequences",
                                              .expected = "a recorded rollout of every step"}});
  }
  std::vector<Sequence> sequences = replay(setting.recorded[step - 1], prompts, file, problems);
  if (setting.config.actor.router_replay == RouterReplayMode::r3) {
    check_experts(sequences, step, setting.plan.model_of(Role::actor), file, problems);
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return sequences;
}

/// Adds the shaping of long responses to every score.
Metrics shape(const OverlongBuffer& buffer, std::span<Sequence> sequences) {
  if (!buffer.enable || sequences.empty()) return {};
  double sum = 0, count = 0;
  for (Sequence& sequence : sequences) {
    const double reward =
        overlong_reward(static_cast<std::int64_t>(sequence.response.size()), buffer);
    sequence.score += reward;
    sum += reward;
    count += reward < 0 ? 1 : 0;
  }
  if (!buffer.log) return {};
  const auto n = static_cast<double>(sequences.size());
  return {{"reward/overlong_reward/mean", sum / n}, {"reward/overlong/mean", count / n}};
}

/// What rollout.batch_invariant costs, by the first generation's measurement.
void note_order_cost(const OrderCost& cost, const Note& note, Metrics& metrics) {
  metrics["rollout/batch_invariant_pass_s"] = cost.fixed_s;
  metrics["rollout/fastest_pass_s"] = cost.fastest_s;
  if (!note) return;
  char line[200];
  std::snprintf(line, sizeof line,
                "[Rollout] batch_invariant: a pass of %lld sequences takes %.3f ms, %.3f ms "
                "without it (%+.1f %%)",
                static_cast<long long>(cost.sequences), 1e3 * cost.fixed_s, 1e3 * cost.fastest_s,
                100 * (cost.fixed_s / cost.fastest_s - 1));
  note(line);
}

/// Adds the figures of `added` further responses to those of `before` ones: means are of all,
/// counts and seconds add up.
void add_rewards(Metrics& all, std::size_t before, const Metrics& further, std::size_t added) {
  const auto more = static_cast<double>(added);
  const double part = more / std::max(1.0, static_cast<double>(before) + more);
  for (const auto& [name, value] : further) {
    const bool adds_up = name == "reward/failed" || name == "reward/exposed_s";
    const auto [known, is_new] = all.try_emplace(name, value);
    if (is_new) continue;
    known->second = adds_up ? known->second + value : std::lerp(known->second, value, part);
  }
}

/// verl's "acc" of each response, 0 of one without; empty where none has one.
Array accuracies(std::span<const ResponseScores> scores) {
  const auto said = [](const ResponseScores& each) { return each.detail.accuracy.has_value(); };
  if (std::ranges::none_of(scores, said)) return {};
  Array values;
  for (const ResponseScores& each : scores) values.push_back(each.detail.accuracy.value_or(0));
  return values;
}

/// `scored`: responses of the step whose figures `rewards` has; both grow.
ScoredRollout scored_rollout(const RolloutSetting& setting, std::vector<Sequence> sequences,
                             Metrics& rewards, std::size_t& scored) {
  const FilterMetric metric = setting.config.algorithm.filter_metric;
  ScoredRollout rollout{std::move(sequences), {}};
  std::vector<ResponseScores> single;
  Metrics told =
      score_by_functions(setting.worker, setting.prompts, rollout.sequences, setting.note,
                         setting.stop, metric == FilterMetric::accuracy ? &single : nullptr);
  const auto keep_scores = [&] {
    for (const Sequence& s : rollout.sequences) rollout.metric.push_back(s.score);
  };
  if (metric == FilterMetric::accuracy) rollout.metric = accuracies(single);
  if (metric != FilterMetric::reward && rollout.metric.empty()) keep_scores();
  told.merge(shape(setting.config.reward.overlong, rollout.sequences));
  add_rewards(rewards, scored, told, rollout.sequences.size());
  scored += rollout.sequences.size();
  if (metric == FilterMetric::reward) keep_scores();
  return rollout;
}

/// Further prompts of the step come after all that were taken before.
FilteredRollout filtered(const RolloutSetting& setting, std::int64_t step, std::int64_t first,
                         Metrics& metrics) {
  std::int64_t& taken = setting.worker.prompts_taken;
  taken = first;
  const auto samples = static_cast<std::int32_t>(setting.plan.workload.samples_per_prompt);
  Metrics rewards;
  std::size_t scored = 0;
  const GroupSource source{
      .prompts =
          [&](std::int64_t count, std::int32_t numbered) {
            taken += count;
            return prompts_at(setting.prompts, taken - count, count, samples, numbered);
          },
      .generate =
          [&](std::span<const TokenPrompt> prompts) {
            return scored_rollout(setting, generated(setting, step, prompts, metrics), rewards,
                                  scored);
          },
      .stop = setting.stop,
      .run_file = setting.config.reward.functions.programs.run_file};
  FilteredRollout groups = filtered_rollout(setting.config.algorithm.filter_groups,
                                            setting.plan.workload.prompts_per_step, source);
  metrics.merge(rewards);
  return groups;
}

/// One answer to each prompt, always the most likely token.
std::vector<Sequence> greedy_answers(const RolloutSetting& setting, std::int64_t step,
                                     std::vector<TokenPrompt> prompts) {
  RolloutOptions options = setting.options;
  options.sampling = {.temperature = 0};
  options.note_experts = options.measure_order = false;
  for (TokenPrompt& prompt : prompts) prompt.samples = 1;
  Metrics unreported;  // the step's figures are of its samples
  return generate_on_replicas(setting, setting.worker.generation.get(), step, prompts, options,
                              unreported);
}

}  // namespace

RolloutOptions rollout_options(const Plan& plan, const RunConfig& config,
                               const PromptSet& prompts) {
  const Batching& batching = plan.find(Role::rollout)->batching;
  RolloutOptions options;
  options.sampling = config.rollout.sampling;
  options.seed = config.rollout.seed;
  options.max_response_tokens = plan.workload.response_tokens.max;
  options.max_sequences = batching.max_sequences;
  options.prefill_tokens = batching.prefill_tokens;
  options.cache_tokens = batching.kv_cache_tokens;
  options.note_experts = config.actor.router_replay == RouterReplayMode::r3;
  options.measure_order = config.rollout.batch_invariant;
  options.eos = prompts.end_tokens;
  return options;
}

std::vector<Sequence> generate_on_replicas(const RolloutSetting& setting, RolloutEngine* engine,
                                           std::int64_t step, std::span<const TokenPrompt> prompts,
                                           const RolloutOptions& options, Metrics& metrics,
                                           const AfterPass& after_pass) {
  Communicator& host = *setting.worker.context.host;
  GeneratedShare share;
  bool draws = true;
  try {
    share = generate_share(setting.worker, engine, step, prompts, options, after_pass);
  } catch (const NoDraw&) {
    draws = false;
  }
  if (any_rank(host, !draws)) throw NoDraw();
  for (const auto& [name, value] : share.metrics) {
    const bool adds_up = name != "rollout/kv_cache_bytes";
    metrics[name] = adds_up ? metrics[name] + value : std::max(metrics[name], value);
  }
  if (share.order_cost) note_order_cost(*share.order_cost, setting.note, metrics);
  Experience all{.step = step};
  SequenceFields fields = SequenceField::tokens | SequenceField::rollout_log_prob;
  if (options.note_experts) fields = fields | SequenceField::routed_experts;
  share_sequences(host, share.sequences, fields, all);
  std::sort(all.sequences.begin(), all.sequences.end(), [](const Sequence& a, const Sequence& b) {
    return std::pair(a.prompt_index, a.sample_index) < std::pair(b.prompt_index, b.sample_index);
  });
  return std::move(all.sequences);
}

std::int64_t first_prompt(const Worker& worker, std::int64_t step, std::int64_t per_step) {
  return std::max(worker.prompts_taken, (step - 1) * per_step + worker.rules.prompts_skipped);
}

StepRollout roll_out(const RolloutSetting& setting, std::int64_t step) {
  const RunConfig& config = setting.config;
  const std::int64_t per_step = setting.plan.workload.prompts_per_step;
  StepRollout result{.experience = {.step = step}, .greedy = {.step = step}};
  const std::int64_t first = first_prompt(setting.worker, step, per_step);
  setting.worker.new_lengths.clear();  // of a step that was left half done
  std::vector<TokenPrompt> prompts;
  if (config.algorithm.filter_groups.enable) {
    FilteredRollout groups = filtered(setting, step, first, result.metrics);
    result.experience.sequences = std::move(groups.sequences);
    prompts = std::move(groups.prompts);
    result.metrics.merge(groups.metrics);
    result.scored = true;
  } else {
    prompts = prompts_at(setting.prompts, first, per_step,
                         static_cast<std::int32_t>(setting.plan.workload.samples_per_prompt));
    result.experience.sequences = config.trainer.rollout_replay.empty()
                                      ? generated(setting, step, prompts, result.metrics)
                                      : replayed(setting, step, prompts);
  }
  if (config.algorithm.advantage.estimator->reads_greedy_scores) {
    result.greedy.sequences = greedy_answers(setting, step, std::move(prompts));
  }
  if (config.algorithm.bypass_mode) {
    for (Sequence& s : result.experience.sequences) s.old_log_prob = s.rollout_log_prob;
  }
  return result;
}

Metrics score_sequences(const RolloutSetting& setting, Experience& experience,
                        std::vector<ResponseScores>* scores) {
  const RoleWorker* const model = setting.worker.find(Role::reward);
  Metrics metrics;
  if (model == nullptr) {
    metrics = score_by_functions(setting.worker, setting.prompts, experience.sequences,
                                 setting.note, setting.stop, scores);
  } else {
    compute_reward_scores(setting.worker, experience);
    const std::span<const Sequence> mine = model->leader()
                                               ? std::span<const Sequence>(experience.sequences)
                                               : std::span<const Sequence>{};
    share_sequences(*setting.worker.context.host, mine,
                    static_cast<SequenceFields>(SequenceField::score), experience);
  }
  metrics.merge(shape(setting.config.reward.overlong, experience.sequences));
  return metrics;
}

Metrics score_step(const RolloutSetting& setting, Experience& experience, Experience& greedy) {
  Metrics metrics = score_sequences(setting, experience);
  if (greedy.sequences.empty()) return metrics;
  score_sequences(setting, greedy);
  std::map<std::int32_t, double> scores;
  for (const Sequence& s : greedy.sequences) scores[s.prompt_index] = s.score;
  for (Sequence& s : experience.sequences) s.greedy_score = scores.at(s.prompt_index);
  return metrics;
}

}  // namespace tessera
