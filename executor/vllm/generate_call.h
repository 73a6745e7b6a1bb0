// A sample of a prompt as a request to vLLM: POST /inference/v1/generate, tokens in, tokens out.
//
// Source: vLLM 0.24.0, entrypoints/serve/disagg/protocol.py and serving.py, sampling_params.py.
// Each sample has a request of its own: a reply to several holds the last of them alone
// (serve_tokens_full_generator); the prefix cache computes the prompt's tokens once all the same.
// Pure functions; no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/rollout/request_queue.h"

namespace tessera {

/// The seed of a sample: Philox of (seed, step, prompt), 62 bits, plus its index.
std::int64_t request_seed(std::uint64_t seed, std::int64_t step, const TokenPrompt& prompt,
                          std::int32_t sample);

std::string generate_body(std::int64_t step, const TokenPrompt& prompt, std::int32_t sample,
                          const RolloutOptions& options);

/// The reply's Sequence with rollout_log_prob. Checks that it answers the request: one choice,
/// lengths within the limit, tokens of the vocabulary, an end token at the end alone, log-probs of
/// the very tokens. Throws Error(check_failed) with what is wrong.
Sequence read_sample_of(const std::string& reply, const TokenPrompt& prompt, std::int32_t sample,
                        const RolloutOptions& options, std::int64_t vocabulary);

/// The --logprobs-mode in which vLLM's log-probs are ours (sampling.h): of all tokens, at the
/// sampling temperature. vLLM has one of the two only with temperature 1, or without top-k and
/// top-p; nullptr where it has neither (v1/sample/sampler.py).
const char* logprobs_mode(const SamplingOptions& sampling);

}  // namespace tessera
