#include "executor/rollout/generate.h"

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "executor/comm/groups.h"
#include "executor/model/decode.h"
#include "executor/model/scores.h"
#include "executor/rollout/sample_rows.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {
namespace {

/// The decoder behind continuous batching's interface.
class DecodedTokens : public TokenModel {
 public:
  DecodedTokens(const Weights& weights, const ParallelGroups& groups, CachedDecoder& decoder,
                const SamplingOptions& sampling)
      : weights_(weights), groups_(groups), decoder_(decoder), sampling_(sampling) {}

  std::vector<Draw> admit(std::span<const Admission> admissions) override {
    std::vector<std::vector<std::int64_t>> prompts;
    std::vector<std::int64_t> first_slots, from, to, rows;
    std::vector<double> uniforms;
    for (const Admission& admission : admissions) {
      prompts.emplace_back(admission.prompt.begin(), admission.prompt.end());
      first_slots.push_back(admission.slots.front());
      for (std::size_t i = 0; i < admission.slots.size(); ++i) {
        rows.push_back(static_cast<std::int64_t>(prompts.size()) - 1);
        uniforms.push_back(admission.uniforms[i]);
        if (i == 0) continue;
        from.push_back(admission.slots.front());
        to.push_back(admission.slots[i]);
      }
    }
    const torch::Tensor hidden =
        decoder_.prefill(pack_tokens(prompts, weights_.device()), first_slots);
    if (!to.empty()) decoder_.copy_slots(from, to);
    return sample_rows(full_logits(weights_, groups_, hidden), rows, uniforms, sampling_);
  }

  std::vector<Draw> advance(std::span<const std::int32_t> tokens,
                            std::span<const std::int64_t> slots,
                            std::span<const double> uniforms) override {
    const std::vector<std::int64_t> wide(tokens.begin(), tokens.end());
    const torch::Tensor ids = torch::tensor(wide, torch::kLong).to(weights_.device());
    const torch::Tensor hidden = decoder_.step(ids, slots);
    std::vector<std::int64_t> rows(slots.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    return sample_rows(full_logits(weights_, groups_, hidden), rows, uniforms, sampling_);
  }

 private:
  const Weights& weights_;
  const ParallelGroups& groups_;
  CachedDecoder& decoder_;
  const SamplingOptions& sampling_;
};

/// FNV-1a over all response tokens and lengths, 62 bits.
std::int64_t digest_of(std::span<const Sequence> sequences) {
  std::uint64_t digest = 0xcbf29ce484222325ull;
  const auto mix = [&](std::uint64_t x) { digest = (digest ^ x) * 0x100000001b3ull; };
  for (const Sequence& s : sequences) {
    mix(s.response.size());
    for (const std::int32_t token : s.response) mix(static_cast<std::uint32_t>(token));
  }
  return static_cast<std::int64_t>(digest >> 2);
}

void check_agreement(std::span<const Sequence> sequences, const Weights& weights,
                     const ParallelGroups& groups) {
  if (groups.tp == nullptr) return;
  const std::int64_t digest = digest_of(sequences);
  torch::Tensor bounds = torch::tensor({digest, -digest}, torch::kLong).to(weights.device());
  all_reduce_(bounds, groups.tp.get(), ReduceOp::max);
  const torch::Tensor host = bounds.cpu();
  if (host[0].item<std::int64_t>() == -host[1].item<std::int64_t>()) return;
  throw Error(ExitCode::internal,
              "tensor-parallel ranks of one rollout replica drew different tokens");
}

}  // namespace

Rollout generate(const Weights& weights, const ParallelGroups& groups, std::int64_t step,
                 std::span<const TokenPrompt> prompts, const RolloutOptions& options) {
  Rollout rollout;
  std::int64_t samples = 0, longest = 0;
  for (const TokenPrompt& prompt : prompts) {
    samples += prompt.samples;
    longest = std::max(longest, static_cast<std::int64_t>(prompt.tokens.size()));
  }
  if (samples > 0) {
    const torch::NoGradGuard no_grad;
    CachedDecoder decoder(weights, groups);
    rollout.kv_cache_bytes = decoder.reserve(std::min(options.max_sequences, samples),
                                             longest + options.max_response_tokens);
    DecodedTokens model(weights, groups, decoder, options.sampling);
    rollout.sequences = generate(model, step, prompts, options, &rollout.counts);
    decoder.release();
  }
  check_agreement(rollout.sequences, weights, groups);
  return rollout;
}

}  // namespace tessera
