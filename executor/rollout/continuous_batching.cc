#include "executor/rollout/continuous_batching.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/split.h"

namespace tessera {
namespace {

/// One sequence in a slot.
struct Running {
  std::size_t sequence = 0;
  std::int64_t slot = 0;
};

class Batch {
 public:
  Batch(TokenModel& model, std::int64_t step, std::span<const TokenPrompt> prompts,
        const RolloutOptions& options, RolloutCounts& counts)
      : model_(model), step_(step), prompts_(prompts), options_(options), counts_(counts) {
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      TESSERA_CHECK(!prompts[p].tokens.empty());
      for (std::int32_t sample = 0; sample < prompts[p].samples; ++sample) {
        sequences_.push_back({.prompt_index = prompts[p].prompt_index,
                              .sample_index = sample,
                              .uid = prompts[p].uid,
                              .prompt = prompts[p].tokens});
        prompt_of_.push_back(p);
      }
    }
    const auto wanted = static_cast<std::int64_t>(sequences_.size());
    for (std::int64_t slot = 0; slot < std::min(options.max_sequences, wanted); ++slot) {
      free_.push(slot);
    }
  }

  std::vector<Sequence> run() {
    while (next_ < sequences_.size() || !running_.empty()) {
      if (next_ < sequences_.size() && !free_.empty()) {
        admit();
      } else {
        advance();
      }
    }
    return std::move(sequences_);
  }

 private:
  double uniform_of(std::size_t sequence) const {
    const Sequence& s = sequences_[sequence];
    return uniform(options_.seed,
                   {static_cast<std::uint32_t>(step_), static_cast<std::uint32_t>(s.prompt_index),
                    static_cast<std::uint32_t>(s.sample_index),
                    static_cast<std::uint32_t>(s.response.size())});
  }

  /// Waiting samples into the free slots, as many as one prefill may hold.
  void admit() {
    std::vector<Admission> admissions;
    std::vector<Running> entered;
    std::int64_t tokens = 0;
    for (; next_ < sequences_.size() && !free_.empty(); ++next_) {
      const bool shares = !entered.empty() && prompt_of_[next_] == prompt_of_[next_ - 1];
      if (!shares) {
        const std::span<const std::int32_t> prompt = prompts_[prompt_of_[next_]].tokens;
        const auto more = static_cast<std::int64_t>(prompt.size());
        const std::int64_t limit = options_.prefill_tokens;
        if (limit > 0 && tokens > 0 && tokens + more > limit) break;
        admissions.push_back({.prompt = prompt});
        tokens += more;
      }
      admissions.back().slots.push_back(free_.top());
      admissions.back().uniforms.push_back(uniform_of(next_));
      entered.push_back({next_, free_.top()});
      free_.pop();
    }
    counts_.prefill_tokens += tokens;
    take(entered, model_.admit(admissions));
    // Slots in order without gaps let a model read its cache in place.
    std::sort(running_.begin(), running_.end(),
              [](const Running& a, const Running& b) { return a.slot < b.slot; });
  }

  /// One token for every running sequence.
  void advance() {
    std::vector<std::int32_t> tokens;
    std::vector<std::int64_t> slots;
    std::vector<double> uniforms;
    for (const Running& r : running_) {
      tokens.push_back(sequences_[r.sequence].response.back());
      slots.push_back(r.slot);
      uniforms.push_back(uniform_of(r.sequence));
    }
    counts_.decode_steps += 1;
    counts_.decode_tokens += static_cast<std::int64_t>(slots.size());
    const std::vector<Running> all = std::exchange(running_, {});
    take(all, model_.advance(tokens, slots, uniforms));
  }

  /// Appends the draws; sequences that are not finished stay in the batch.
  void take(std::span<const Running> drawn, const std::vector<Draw>& draws) {
    TESSERA_CHECK(drawn.size() == draws.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      Sequence& s = sequences_[drawn[i].sequence];
      s.response.push_back(draws[i].token);
      s.rollout_log_prob.push_back(draws[i].log_prob);
      s.finished =
          std::find(options_.eos.begin(), options_.eos.end(), draws[i].token) != options_.eos.end();
      const auto length = static_cast<std::int64_t>(s.response.size());
      if (s.finished || length >= options_.max_response_tokens) {
        free_.push(drawn[i].slot);
      } else {
        running_.push_back(drawn[i]);
      }
    }
  }

  TokenModel& model_;
  std::int64_t step_;
  std::span<const TokenPrompt> prompts_;
  const RolloutOptions& options_;
  RolloutCounts& counts_;
  std::vector<Sequence> sequences_;
  std::vector<std::size_t> prompt_of_;  // position in prompts_, by sequence
  std::size_t next_ = 0;                // first sequence that has not entered
  std::vector<Running> running_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_;
};

}  // namespace

std::vector<Sequence> generate(TokenModel& model, std::int64_t step,
                               std::span<const TokenPrompt> prompts, const RolloutOptions& options,
                               RolloutCounts* counts) {
  TESSERA_CHECK(options.max_response_tokens > 0 && options.max_sequences > 0);
  RolloutCounts unused;
  return Batch(model, step, prompts, options, counts != nullptr ? *counts : unused).run();
}

std::span<const TokenPrompt> prompts_of_replica(std::span<const TokenPrompt> prompts, int replicas,
                                                int replica) {
  const Interval part = split(static_cast<std::int64_t>(prompts.size()), replicas, replica);
  return prompts.subspan(static_cast<std::size_t>(part.lo), static_cast<std::size_t>(part.size()));
}

std::vector<Sequence> replay(const Experience& recorded, std::span<const TokenPrompt> prompts,
                             const std::string& file, Problems& problems) {
  std::map<std::pair<std::int32_t, std::int32_t>, const Sequence*> known;
  for (const Sequence& s : recorded.sequences) {
    known.emplace(std::pair(s.prompt_index, s.sample_index), &s);
  }
  std::vector<Sequence> sequences;
  for (const TokenPrompt& prompt : prompts) {
    for (std::int32_t sample = 0; sample < prompt.samples; ++sample) {
      const std::string place = "step " + std::to_string(recorded.step) + ", prompt_index " +
                                std::to_string(prompt.prompt_index) + ", sample_index " +
                                std::to_string(sample);
      const auto at = known.find({prompt.prompt_index, sample});
      if (at == known.end()) {
        problems.push_back({file, place, "no such sample", "a recorded response", {}});
      } else if (at->second->prompt != prompt.tokens) {
        problems.push_back(
            {file, place, "another prompt", "the prompt of this run",
             "replay needs the data, order and samples per prompt of the recording"});
      } else {
        sequences.push_back(*at->second);
        sequences.back().uid = prompt.uid;
      }
    }
  }
  return sequences;
}

}  // namespace tessera
