// Which sequence runs in which slot and when: continuous batching over a model that is given.
//
// A sequence enters a free slot as soon as there is one and leaves it with its last token. Samples
// of a prompt that enter together share its prefill. What a sequence says does not depend on slots,
// neighbours or order (sampling.h), so this file decides speed only. No torch here; every
// tensor-parallel rank runs it alike. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/rl/experience.h"
#include "executor/rl/sampling.h"

namespace tessera {

struct TokenPrompt {
  std::int32_t prompt_index = 0;  // within the step, over all replicas
  std::string uid;                // the group of its samples
  std::vector<std::int32_t> tokens;
  std::int32_t samples = 1;
};

struct RolloutOptions {
  SamplingOptions sampling;
  std::uint64_t seed = 0;
  std::int64_t max_response_tokens = 0;
  std::vector<std::int32_t> eos;    // any of them ends a response, of which it is the last token
  std::int64_t max_sequences = 0;   // slots
  std::int64_t prefill_tokens = 0;  // prompt tokens per prefill; 0 = no limit
};

/// Samples of one prompt that start together.
struct Admission {
  std::span<const std::int32_t> prompt;
  std::vector<std::int64_t> slots;  // one per sample
  std::vector<double> uniforms;     // for the first token of each
};

/// A model as batching sees it; slots are numbered from 0.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Fills the slots with the prompts and draws each sample's first token: one Draw per slot, in
  /// the order of the admissions.
  virtual std::vector<Draw> admit(std::span<const Admission> admissions) = 0;
  /// Appends tokens[i] to slots[i] and draws the token after it.
  virtual std::vector<Draw> advance(std::span<const std::int32_t> tokens,
                                    std::span<const std::int64_t> slots,
                                    std::span<const double> uniforms) = 0;
};

struct RolloutCounts {
  std::int64_t prefill_tokens = 0;  // computed, a shared prompt once
  std::int64_t decode_steps = 0;
  std::int64_t decode_tokens = 0;  // over all steps
};

/// Every sample of every prompt, in the order (prompt, sample), with rollout_log_prob.
/// Preconditions: max_response_tokens > 0, max_sequences > 0, no prompt is empty.
std::vector<Sequence> generate(TokenModel& model, std::int64_t step,
                               std::span<const TokenPrompt> prompts, const RolloutOptions& options,
                               RolloutCounts* counts = nullptr);

/// The share of a data-parallel replica: consecutive prompts by the split rule.
std::span<const TokenPrompt> prompts_of_replica(std::span<const TokenPrompt> prompts, int replicas,
                                                int replica);

/// Takes the responses from a recorded step instead of generating them. A sample that is not in the
/// record, or whose recorded prompt has other tokens, is a Problem of `file`.
std::vector<Sequence> replay(const Experience& recorded, std::span<const TokenPrompt> prompts,
                             const std::string& file, Problems& problems);

}  // namespace tessera
