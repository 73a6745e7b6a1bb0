// A prompt's samples as one request to vLLM: POST /inference/v1/generate, tokens in, tokens out.
//
// Source: vLLM 0.24.0, entrypoints/serve/disagg/protocol.py and serving.py, sampling_params.py;
// sample i of a request is drawn with its seed plus i (v1/engine/parallel_sampling.py). Pure
// functions; no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/rollout/request_queue.h"

namespace tessera {

/// Samples [first, first + count) of a prompt.
struct SampleRange {
  std::int32_t first = 0, count = 0;
};

/// The requests that a prompt takes: one a sample. A reply to several holds the last of them alone
/// (serve_tokens_full_generator of vLLM 0.24); the prompt's tokens are computed once all the same,
/// by the prefix cache.
std::vector<SampleRange> requests_of(const TokenPrompt& prompt);

/// The seed of the first of these samples: Philox of (seed, step, prompt), 62 bits, plus its index,
/// so that a sample's seed does not depend on how the prompt is cut into requests.
std::int64_t request_seed(std::uint64_t seed, std::int64_t step, const TokenPrompt& prompt,
                          const SampleRange& samples);

std::string generate_body(std::int64_t step, const TokenPrompt& prompt, const SampleRange& samples,
                          const RolloutOptions& options);

/// The samples of a reply, as a Sequence each with rollout_log_prob. Checks that it answers the
/// request: as many choices, lengths within the limit, tokens of the vocabulary, an end token at
/// the end alone, log-probs of the very tokens. Throws Error(check_failed) with what is wrong.
std::vector<Sequence> read_samples_of(const std::string& reply, const TokenPrompt& prompt,
                                      const SampleRange& samples, const RolloutOptions& options,
                                      std::int64_t vocabulary);

/// The --logprobs-mode in which vLLM's log-probs are ours (sampling.h): of all tokens, at the
/// sampling temperature. vLLM has one of the two only with temperature 1, or without top-k and
/// top-p; nullptr where it has neither (v1/sample/sampler.py).
const char* logprobs_mode(const SamplingOptions& sampling);

}  // namespace tessera
