// The samples of a prompt as a request to vLLM: POST /tessera/generate, tokens in, tokens out.
//
// The route is integrations/vllm/tessera_vllm/serve.py's, in vLLM's API server: one request brings
// all samples of a prompt, each with a seed and a limit of its own, and log-probs as plain numbers.
// vLLM 0.24.0's own routes make objects of every token's log-prob at every step (entrypoints/serve/
// disagg/serving.py). Pure functions; no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/rollout/request_queue.h"

namespace tessera {

/// The seed of a sample: Philox of (seed, step, prompt), 62 bits, plus its index.
std::int64_t request_seed(std::uint64_t seed, std::int64_t step, const TokenPrompt& prompt,
                          std::int32_t sample);

std::string generate_body(std::int64_t step, const TokenPrompt& prompt,
                          const RolloutOptions& options);

/// The reply's Sequences with rollout_log_prob, in the order of samples. Checks that it answers the
/// request: as many samples, lengths within the limits, tokens of the vocabulary, an end token at
/// the end alone, a log-prob for each token. Throws Error(check_failed) with what is wrong.
std::vector<Sequence> read_samples_of(const std::string& reply, const TokenPrompt& prompt,
                                      const RolloutOptions& options, std::int64_t vocabulary);

/// The --logprobs-mode in which vLLM's log-probs are ours (sampling.h): of all tokens, at the
/// sampling temperature. vLLM has one of the two only with temperature 1, or without top-k and
/// top-p; nullptr where it has neither (v1/sample/sampler.py).
const char* logprobs_mode(const SamplingOptions& sampling);

}  // namespace tessera
