#include "executor/loop/reward_scores.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/loop/share.h"

namespace tessera {
namespace {

/// One score of a program as ranks exchange it; NaN where there is none.
struct ProgramScore {
  std::uint32_t sequence, function;
  double score;
};

/// Scores of all functions, by sequence and function.
struct Scores {
  std::size_t functions;
  std::vector<double> values;
  double& at(std::size_t sequence, std::size_t function) {
    return values[sequence * functions + function];
  }
};

constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

void score_by_rules(const PromptSet& set, std::span<const Sequence> sequences, Scores& scores) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Prompt& prompt = prompt_of(set, sequences[i]);
    const std::string response = set.tokenizer.decode(sequences[i].response);
    for (std::size_t f = 0; f < set.rewards.size(); ++f) {
      const RewardRule* rule = set.rewards[f].rule;
      if (rule == nullptr) continue;
      scores.at(i, f) = rule->score({prompt.data_source, response, prompt.ground_truth});
    }
  }
}

/// What this rank's processes of one program make of its share; the first failure in words.
std::string score_by_program(RewardWorkers& workers, std::size_t function, const PromptSet& set,
                             std::span<const Sequence> sequences,
                             std::span<const std::uint32_t> mine,
                             std::vector<ProgramScore>& scores) {
  std::vector<RewardRequest> requests;
  for (const std::uint32_t i : mine) {
    const Prompt& prompt = prompt_of(set, sequences[i]);
    requests.push_back({.data_source = prompt.data_source,
                        .response = set.tokenizer.decode(sequences[i].response),
                        .truth_json = truth_json(prompt),
                        .extra_info_json = prompt.extra_info});
  }
  std::string failure;
  const std::vector<RewardAnswer> answers = workers.score(requests);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].score && failure.empty()) failure = answers[i].failure;
    scores.push_back({.sequence = mine[i],
                      .function = static_cast<std::uint32_t>(function),
                      .score = answers[i].score.value_or(kNoScore)});
  }
  return failure;
}

std::vector<std::uint32_t> share_of(const RewardWorkersOfRank& own, std::size_t sequences,
                                    const Communicator& host) {
  std::vector<std::uint32_t> mine;
  for (std::size_t i = 0; i < sequences; ++i) {
    if (rank_of_reward(i, own.processes, host.size()) == host.rank()) {
      mine.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return mine;
}

/// Runs the programs and exchanges what they say; the words of one failure, if there is any.
std::string score_by_programs(RewardWorkersOfRank& own, Communicator& host, const PromptSet& set,
                              std::span<const Sequence> sequences, Scores& scores) {
  const std::vector<std::uint32_t> share = share_of(own, sequences.size(), host);
  std::vector<ProgramScore> mine;
  std::string failure;
  for (std::size_t f = 0; f < set.rewards.size(); ++f) {
    if (own.by_function[f] == nullptr) continue;
    const std::string told = score_by_program(*own.by_function[f], f, set, sequences, share, mine);
    if (failure.empty() && !told.empty()) failure = set.rewards[f].name + ": " + told;
  }
  const std::string packed(reinterpret_cast<const char*>(mine.data()),
                           mine.size() * sizeof(ProgramScore));
  for (const std::string& block : share_texts(host, packed)) {
    for (std::size_t at = 0; at < block.size(); at += sizeof(ProgramScore)) {
      ProgramScore score{};
      std::memcpy(&score, block.data() + at, sizeof score);
      scores.at(score.sequence, score.function) = score.score;
    }
  }
  for (const std::string& told : share_texts(host, failure)) {
    if (!told.empty()) return told;
  }
  return {};
}

Metrics means_of(const PromptSet& set, std::size_t sequences, Scores& scores) {
  Metrics metrics;
  for (std::size_t f = 0; f < set.rewards.size(); ++f) {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < sequences; ++i) {
      if (std::isnan(scores.at(i, f))) continue;
      sum += scores.at(i, f);
      ++count;
    }
    if (count > 0) metrics["reward/" + set.rewards[f].name + "/mean"] = sum / count;
  }
  return metrics;
}

bool has_programs(const PromptSet& set) {
  for (const RewardFunction& function : set.rewards) {
    if (function.rule == nullptr) return true;
  }
  return false;
}

/// Counts responses without a score of some program, and tells of them.
Metrics count_failures(RewardWorkersOfRank& own, const PromptSet& set, std::size_t sequences,
                       Scores& scores, const std::string& failure, const Note& note) {
  std::size_t failed = 0;
  for (std::size_t i = 0; i < sequences; ++i) {
    bool whole = true;
    for (std::size_t f = 0; f < set.rewards.size(); ++f) whole &= !std::isnan(scores.at(i, f));
    failed += whole ? 0 : 1;
  }
  own.answered = own.answered || failed < sequences;
  const std::string told = std::to_string(failed) + " of " + std::to_string(sequences) +
                           " responses have no score (" + failure + ")";
  if (!own.answered && sequences > 0) {
    throw Error(ExitCode::bad_input, "reward: " + told + ", and none ever had one");
  }
  if (failed > 0 && note) note("[Reward] " + told);
  return {{"reward/failed", static_cast<double>(failed)}};
}

}  // namespace

RewardWorkersOfRank make_reward_workers(const PromptSet& set, const RewardPrograms& programs,
                                        const Communicator& host) {
  RewardWorkersOfRank own{.by_function = {}, .processes = programs.workers};
  Problems problems;
  for (const RewardFunction& function : set.rewards) {
    own.by_function.push_back(
        make_reward_workers(function, programs, host.rank(), host.size(), problems));
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return own;
}

Metrics score_by_functions(Worker& worker, const PromptSet& set, std::span<Sequence> sequences,
                           const Note& note) {
  Scores scores{set.rewards.size(), {}};
  scores.values.assign(sequences.size() * scores.functions, kNoScore);
  score_by_rules(set, sequences, scores);
  Metrics metrics;
  if (has_programs(set)) {
    const std::string failure =
        score_by_programs(worker.rewards, *worker.context.host, set, sequences, scores);
    metrics = count_failures(worker.rewards, set, sequences.size(), scores, failure, note);
  }
  if (set.rewards.size() > 1) metrics.merge(means_of(set, sequences.size(), scores));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto score = [&](std::size_t f) {
      return std::isnan(scores.at(i, f)) ? 0.0 : scores.at(i, f);
    };
    sequences[i].score = 0;
    for (std::size_t f = 0; f < set.rewards.size(); ++f) {
      sequences[i].score += set.rewards[f].weight * score(f);
    }
    sequences[i].components.clear();
    for (const std::size_t f : set.components) sequences[i].components.push_back(score(f));
  }
  return metrics;
}

}  // namespace tessera
