// Requests for samples of prompts, and which of their sequences run when: continuous batching over
// a cache in pages.
//
// A pass decodes one token of every running sequence and computes a piece of the prompts that wait.
// A sequence enters when a slot and the pages of its text are free, and leaves with its last token;
// when pages run out the sequence that entered last goes back to the queue with what it has said,
// and is computed again later. Samples of a prompt share its prefill and its full pages. Passes are
// launched one ahead of the results, so a sequence's end is seen while one more token of it is on
// its way, which is dropped. What a sequence says does not depend on any of this (sampling.h). No
// torch here; every tensor-parallel rank runs it alike. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/rl/experience.h"
#include "executor/rl/sampling.h"
#include "executor/rollout/kv_pages.h"
#include "executor/rollout/token_model.h"

namespace tessera {

/// Response tokens that the samples of a prompt are expected to have.
struct ExpectedTokens {
  double mean = 0, longest = 0;  // 0 = not known
  bool known() const { return mean > 0; }
  bool operator==(const ExpectedTokens&) const = default;
};

struct TokenPrompt {
  std::int32_t prompt_index = 0;  // within the step, over all replicas
  std::string uid;                // the group of its samples
  std::vector<std::int32_t> tokens;
  std::int32_t samples = 1;
  /// The longest response of each sample, where they are not all max_response_tokens; >= 1.
  std::vector<std::int64_t> limits;
  ExpectedTokens expected;  // by earlier responses to it
};

struct RolloutOptions {
  SamplingOptions sampling;
  std::uint64_t seed = 0;
  std::int64_t max_response_tokens = 0;
  std::vector<std::int32_t> eos;    // any of them ends a response, of which it is the last token
  std::int64_t max_sequences = 0;   // that decode at a time
  std::int64_t prefill_tokens = 0;  // prompt tokens per pass; 0 = no limit
  std::int64_t cache_tokens = 0;    // that the cache holds; 0 = max_sequences of the longest texts
  bool note_experts = false;        // Sequence::routed_experts, of a model with experts
  bool measure_order = false;       // Rollout::order_cost, of an engine in the fixed order
};

struct RolloutCounts {
  std::int64_t prefill_tokens = 0;  // computed, a shared prompt once
  std::int64_t decode_steps = 0;    // passes that decode
  std::int64_t decode_tokens = 0;   // over all of them
  std::int64_t tail_steps = 0;      // of decode_steps: fewer than half of the slots were at work
  std::int64_t preemptions = 0;
  std::int64_t dropped_tokens = 0;  // drawn past a sequence's end
};

/// One sample's sequence as it ended; `cancelled` ones are not finished and may be short.
struct EndedSequence {
  std::int64_t request = 0;
  Sequence sequence;
  bool cancelled = false;
};

class RequestQueue {
 public:
  /// `model` outlives the queue. A cache of `pages` pages must hold the longest text and its
  /// response: Error{bad_input} at submit where it does not.
  RequestQueue(TokenModel& model, std::int64_t step, const RolloutOptions& options,
               std::int64_t pages);

  /// Adds a prompt's samples to the end of the queue; the request's number. The prompt is not
  /// empty.
  std::int64_t submit(TokenPrompt prompt);
  /// Ends all samples of a request that have not ended.
  void cancel(std::int64_t request);
  /// Launches the next pass, where there is something to compute, and takes in the results of the
  /// one before. False when nothing is left to do.
  bool step();
  /// The sequences that have ended since the last call, in the order of their ends.
  std::vector<EndedSequence> take_ended();

  const RolloutCounts& counts() const { return counts_; }
  const KvPages& pages() const { return pages_; }

 private:
  enum class State : std::uint8_t { waiting, prefilling, running, ended };

  struct Sample {
    std::size_t request = 0;
    Sequence text;
    std::int64_t limit = 0;  // tokens of its longest response
    State state = State::waiting;
    std::int64_t slot = -1;
    std::int64_t drawn = 0;           // response tokens, those on their way included
    std::vector<std::int32_t> pages;  // while it prefills or runs
  };
  struct Request {
    TokenPrompt prompt;
    std::vector<std::size_t> samples;
    std::int64_t active = 0;  // of its samples that prefill or run
    /// Full pages of the prompt with which samples that enter later begin; held while `active`.
    std::vector<std::int32_t> shared;
    bool prefilling = false;
    std::vector<std::int16_t> routed_experts;  // of the prompt's tokens that have been computed
  };
  /// Samples that enter together: the first one's text is computed, the others take its pages.
  struct Entering {
    std::size_t request = 0;
    std::vector<std::size_t> samples;
    std::vector<std::int32_t> tokens;
    std::int64_t computed = 0;  // of the tokens, by passes that are launched or shared pages
  };
  /// Rows of a pass that are tokens of some samples' text from `begin` on.
  struct Computed {
    std::vector<std::size_t> samples;
    std::int64_t begin = 0, tokens = 0;
  };
  struct Launched {
    std::vector<std::size_t> samples;              // by draw
    std::vector<std::vector<std::int32_t>> texts;  // that the pass points to
    std::vector<Computed> computed;                // where experts are noted: all its rows
  };

  std::int64_t limit_of(const TokenPrompt& prompt, std::int32_t sample) const;
  std::int64_t length_of(const Sample& sample) const;  // of its text, drawn tokens included
  std::int64_t pages_for(std::int64_t tokens) const;
  DrawnToken next_draw(Sample& sample) const;
  bool take_pages(Sample& sample, std::int64_t tokens);

  void make_room();
  bool grow();
  void preempt(std::size_t sample);
  void leave(Sample& sample);
  void end(std::size_t sample, bool cancelled);

  void admit();
  bool admit_first(std::size_t sample, Entering& entering);
  bool admit_with(const Sample& first, std::size_t sample);
  void add_decodes(Pass& pass, Launched& launched);
  void add_prefills(Pass& pass, Launched& launched);
  void finish_prefill(const Entering& entering, PrefillRow& row, Launched& launched);
  void collect();
  void note_experts(const Launched& launched);

  TokenModel& model_;
  std::int64_t step_;
  RolloutOptions options_;
  KvPages pages_;
  std::vector<Sample> samples_;
  std::vector<Request> requests_;
  std::deque<std::size_t> waiting_;   // samples, in the order in which they may enter
  std::deque<Entering> entering_;     // whose prompts are being computed
  std::vector<std::size_t> running_;  // in the order in which they entered
  std::vector<std::int64_t> free_slots_;
  std::deque<Launched> launched_;
  std::vector<EndedSequence> ended_;
  RolloutCounts counts_;
};

/// Hears after every pass of the sequences that ended with it, which may be none.
using AfterPass = std::function<void(std::span<const EndedSequence> ended)>;

/// Submits the prompts and runs the queue until it is empty: every sample of every prompt, in the
/// order (prompt, sample), with rollout_log_prob. Precondition: nothing was submitted before.
std::vector<Sequence> generate_all(RequestQueue& queue, std::span<const TokenPrompt> prompts,
                                   const AfterPass& after_pass = {});

}  // namespace tessera
