#include "executor/loop/reward_scores.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/loop/calls.h"
#include "executor/loop/share.h"
#include "executor/rewards/program_words.h"

namespace tessera {
namespace {

/// One answer of a program as ranks exchange it; its score is NaN where there is none.
struct ProgramScore {
  std::uint32_t sequence = 0, function = 0;
  double score = 0;
  ScoreDetail detail;
};

/// Answers of all functions, by sequence and function.
struct Scores {
  std::size_t functions;
  std::vector<double> values;
  std::vector<ScoreDetail> details;
  std::vector<bool> known;  // some program has been asked, whatever it said
  double& at(std::size_t sequence, std::size_t function) {
    return values[sequence * functions + function];
  }
};

/// How programs did: what all ranks' said beside scores, seconds that this rank waited for them,
/// and of its responses those whose answer was there before it waited.
struct ProgramRound {
  ProgramWords words;
  double waited_s = 0;
  std::int64_t asked = 0, early = 0;
  bool given_up = false;  // the run is to end
};

constexpr std::chrono::milliseconds kLook{200};  // between two looks whether the run is to end
constexpr const char* kRewardLog = "reward.log";
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

void append(std::string& out, const auto& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, const std::string& text) {
  append(out, text.size());
  out += text;
}

void take(const std::string& block, std::size_t& at, auto& value) {
  std::memcpy(&value, block.data() + at, sizeof value);
  at += sizeof value;
}

std::string take_text(const std::string& block, std::size_t& at) {
  std::size_t size = 0;
  take(block, at, size);
  at += size;
  return block.substr(at - size, size);
}

std::string packed(std::span<const ProgramScore> scores) {
  std::string out;
  for (const ProgramScore& score : scores) {
    append(out, score.sequence);
    append(out, score.function);
    append(out, score.score);
    append(out, score.detail.accuracy.value_or(kNoScore));
    append(out, score.detail.plain_number);
    append(out, score.detail.answer.has_value());
    append_text(out, score.detail.answer.value_or(""));
    append(out, score.detail.more.size());
    for (const auto& [name, value] : score.detail.more) {
      append_text(out, name);
      append(out, value);
    }
  }
  return out;
}

std::vector<ProgramScore> unpacked(const std::string& block) {
  std::vector<ProgramScore> scores;
  for (std::size_t at = 0; at < block.size();) {
    ProgramScore score;
    double accuracy = 0;
    bool has_answer = false;
    std::size_t numbers = 0;
    take(block, at, score.sequence);
    take(block, at, score.function);
    take(block, at, score.score);
    take(block, at, accuracy);
    take(block, at, score.detail.plain_number);
    take(block, at, has_answer);
    std::string answer = take_text(block, at);
    if (!std::isnan(accuracy)) score.detail.accuracy = accuracy;
    if (has_answer) score.detail.answer = std::move(answer);
    for (take(block, at, numbers); numbers > 0; --numbers) {
      const std::string name = take_text(block, at);
      take(block, at, score.detail.more[name]);
    }
    scores.push_back(std::move(score));
  }
  return scores;
}

void score_by_rules(const PromptSet& set, std::span<const Sequence> sequences, bool with_details,
                    Scores& scores) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Prompt& prompt = prompt_of(set, sequences[i]);
    const std::string response = set.tokenizer.decode(sequences[i].response);
    for (std::size_t f = 0; f < set.rewards.size(); ++f) {
      const RewardRule* rule = set.rewards[f].rule;
      if (rule == nullptr) continue;
      const RewardText text{prompt.data_source, response, prompt.ground_truth};
      scores.at(i, f) = rule->score(text);
      if (with_details) scores.details[i * scores.functions + f] = detail_of(*rule, text);
    }
  }
}

RewardRequest request_of(const PromptSet& set, const Sequence& sequence) {
  const Prompt& prompt = prompt_of(set, sequence);
  return {.data_source = prompt.data_source,
          .response = set.tokenizer.decode(sequence.response),
          .truth_json = truth_json(prompt),
          .extra_info_json = prompt.extra_info};
}

/// Waits until the programs of all ranks have answered; false where the run is to end before.
bool await_programs(RewardWorkersOfRank& own, Communicator& host,
                    const std::function<bool()>& stop) {
  for (;;) {
    bool waits = false;
    for (const auto& workers : own.by_function) {
      if (workers != nullptr && !workers->wait(kLook)) waits = true;
    }
    if (!any_rank(host, waits)) return true;
    if (stop && stop()) return false;
  }
}

/// Takes what every program has said of what was submitted; `which` are the sequences in that
/// order,
std::vector<ProgramScore> collect(RewardWorkersOfRank& own, const PromptSet& set,
                                  std::span<const std::uint32_t> which, ProgramRound& round) {
  std::vector<ProgramScore> scores;
  for (std::size_t f = 0; f < own.by_function.size(); ++f) {
    if (own.by_function[f] == nullptr) continue;
    std::vector<RewardAnswer> answers = own.by_function[f]->finish();
    round.asked += static_cast<std::int64_t>(answers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      add_words(round.words, set.rewards[f].name, answers[i]);
      scores.push_back({.sequence = which[i],
                        .function = static_cast<std::uint32_t>(f),
                        .score = answers[i].score.value_or(kNoScore),
                        .detail = std::move(answers[i].detail)});
    }
  }
  return scores;
}

/// Exchanges what the programs of all ranks have said.
void exchange(Communicator& host, std::span<const ProgramScore> mine, Scores& scores,
              ProgramWords& words) {
  for (const std::string& block : share_texts(host, packed(mine))) {
    for (ProgramScore& score : unpacked(block)) {
      const std::size_t at = score.sequence * scores.functions + score.function;
      scores.values[at] = score.score;
      scores.details[at] = std::move(score.detail);
      scores.known[at] = true;
    }
  }
  words = words_of_all(share_texts(host, packed_words(words)));
}

/// The sequences that were begun while others still grew.
std::vector<std::uint32_t> begun_sequences(RewardWorkersOfRank& own,
                                           std::span<const Sequence> sequences) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> places;
  for (std::uint32_t i = 0; i < sequences.size() && !own.begun.empty(); ++i) {
    places[{sequences[i].prompt_index, sequences[i].sample_index}] = i;
  }
  std::vector<std::uint32_t> which;
  for (const auto& [prompt, sample] : std::exchange(own.begun, {})) {
    which.push_back(places.at({prompt, sample}));
  }
  return which;
}

/// This rank's part of the sequences that no program has been asked about.
std::vector<std::uint32_t> rest_of_share(const RewardWorkersOfRank& own, std::size_t sequences,
                                         const Communicator& host, const Scores& scores) {
  std::vector<std::uint32_t> mine;
  std::size_t next = 0;
  for (std::size_t i = 0; i < sequences; ++i) {
    bool asked = false;
    for (std::size_t f = 0; f < scores.functions; ++f) {
      asked = asked || scores.known[i * scores.functions + f];
    }
    if (asked) continue;
    const int place = rank_of_reward(next++, own.processes, host.size());
    if (own.ranks[static_cast<std::size_t>(place)] == host.rank()) {
      mine.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return mine;
}

/// Runs the programs and exchanges what they say: first of what was begun during generation.
ProgramRound score_by_programs(RewardWorkersOfRank& own, Communicator& host, const PromptSet& set,
                               std::span<const Sequence> sequences,
                               const std::function<bool()>& stop, Scores& scores) {
  using Clock = std::chrono::steady_clock;
  ProgramRound round;
  const auto timed = [&](std::span<const std::uint32_t> which) {
    const Clock::time_point begin = Clock::now();
    round.given_up = !await_programs(own, host, stop);
    if (round.given_up) return;
    const std::vector<ProgramScore> mine = collect(own, set, which, round);
    round.waited_s += std::chrono::duration<double>(Clock::now() - begin).count();
    exchange(host, mine, scores, round.words);
  };
  for (const auto& workers : own.by_function) {
    if (workers == nullptr) continue;
    workers->poll();
    round.early += static_cast<std::int64_t>(workers->answered());
  }
  timed(begun_sequences(own, sequences));
  if (round.given_up) return round;
  const std::vector<std::uint32_t> rest = rest_of_share(own, sequences.size(), host, scores);
  if (!any_rank(host, !rest.empty())) return round;
  for (const std::uint32_t i : rest) {
    for (const auto& workers : own.by_function) {
      if (workers != nullptr) workers->submit(request_of(set, sequences[i]));
    }
  }
  timed(rest);
  return round;
}

/// Over all ranks.
double overlapped_share(Communicator& host, const ProgramRound& round) {
  std::array<std::int64_t, 2> counts = {round.early, round.asked};
  host.all_reduce(counts.data(), counts.size(), DType::int64, ReduceOp::sum);
  return counts[1] == 0 ? 0 : static_cast<double>(counts[0]) / static_cast<double>(counts[1]);
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
                       Scores& scores, const ProgramWords& words, const Note& note) {
  std::size_t failed = 0;
  for (std::size_t i = 0; i < sequences; ++i) {
    bool whole = true;
    for (std::size_t f = 0; f < set.rewards.size(); ++f) whole &= !std::isnan(scores.at(i, f));
    failed += whole ? 0 : 1;
  }
  own.answered = own.answered || failed < sequences;
  const std::vector<std::string> lines = lines_of(words, failed, sequences, own.told);
  const bool learns = own.answered || sequences == 0;
  for (std::size_t i = learns ? 0 : 1; i < lines.size() && note; ++i) note("[Reward] " + lines[i]);
  if (!learns) {
    throw RewardsFailed(ExitCode::bad_input,
                        "reward: " + lines.front() + ", and none ever had one");
  }
  return {{"reward/failed", static_cast<double>(failed)}};
}

ResponseScores scores_of(Scores& scores, std::size_t sequence) {
  ResponseScores response;
  for (std::size_t f = 0; f < scores.functions; ++f) {
    response.by_function.push_back(scores.at(sequence, f));
    ScoreDetail& detail = scores.details[sequence * scores.functions + f];
    if (!response.detail.answer) response.detail.answer = std::move(detail.answer);
    response.detail.more.merge(detail.more);
    // A plain number is the accuracy of a response where no other function has a word in its score.
    const auto accuracy =
        scores.functions == 1 ? accuracy_of(scores.at(sequence, f), detail) : detail.accuracy;
    if (!response.detail.accuracy) response.detail.accuracy = accuracy;
  }
  return response;
}

}  // namespace

RewardWorkersOfRank make_reward_workers(const PromptSet& set, const RewardPrograms& programs,
                                        const Worker& worker) {
  Communicator& host = *worker.context.host;
  RewardWorkersOfRank own{.by_function = {},
                          .processes = programs.workers,
                          .ranks = {},
                          .answered = false,
                          .begun = {}};
  const RoleWorker* const rollout = worker.find(Role::rollout);
  const bool speaks = rollout != nullptr && speaks_for_replica(*rollout);
  const std::vector<std::string> speakers = share_texts(host, speaks ? "speaks" : "");
  for (const bool first : {true, false}) {
    for (std::size_t rank = 0; rank < speakers.size(); ++rank) {
      if (speakers[rank].empty() != first) own.ranks.push_back(static_cast<int>(rank));
    }
  }
  const auto place =
      static_cast<int>(std::ranges::find(own.ranks, host.rank()) - own.ranks.begin());
  RewardPrograms logged = programs;
  if (!worker.context.logs.empty()) logged.limits.log = worker.context.logs / kRewardLog;
  Problems problems;
  for (const RewardFunction& function : set.rewards) {
    own.by_function.push_back(make_reward_scorer(function, logged, place, host.size(), problems));
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return own;
}

void score_ended(RewardWorkersOfRank& own, const PromptSet& set,
                 std::span<const EndedSequence> ended) {
  const bool any = std::ranges::any_of(own.by_function, [](const auto& w) { return w != nullptr; });
  if (!any) return;
  for (const EndedSequence& end : ended) {
    own.begun.push_back({end.sequence.prompt_index, end.sequence.sample_index});
    for (const auto& workers : own.by_function) {
      if (workers != nullptr) workers->submit(request_of(set, end.sequence));
    }
  }
  for (const auto& workers : own.by_function) {
    if (workers != nullptr) workers->poll();
  }
}

Metrics score_by_functions(Worker& worker, const PromptSet& set, std::span<Sequence> sequences,
                           const Note& note, const std::function<bool()>& stop,
                           std::vector<ResponseScores>* told) {
  Scores scores{.functions = set.rewards.size(), .values = {}, .details = {}, .known = {}};
  const std::size_t entries = sequences.size() * scores.functions;
  scores.values.assign(entries, kNoScore);
  scores.details.resize(entries);
  scores.known.assign(entries, false);
  score_by_rules(set, sequences, told != nullptr, scores);
  Metrics metrics;
  if (has_programs(set)) {
    const ProgramRound round =
        score_by_programs(worker.rewards, *worker.context.host, set, sequences, stop, scores);
    if (round.given_up) return {};
    metrics = count_failures(worker.rewards, set, sequences.size(), scores, round.words, note);
    metrics["reward/exposed_s"] = round.waited_s;
    metrics["reward/overlapped"] = overlapped_share(*worker.context.host, round);
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
    if (told != nullptr) told->push_back(scores_of(scores, i));
  }
  return metrics;
}

}  // namespace tessera
