// Decoding with a cache gives the logits of the full forward pass, token by token.
#include "executor/model/decode.h"

#include <gmock/gmock.h>

#include "executor/model/scores.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;
using Sequences = std::vector<std::vector<std::int64_t>>;

Sequences drawn_sequences(const ModelSpec& spec, const std::vector<std::int64_t>& lengths) {
  torch::manual_seed(11);
  Sequences sequences;
  for (const std::int64_t length : lengths) {
    const Tensor ids = torch::randint(spec.vocab, {length}, torch::kInt64);
    sequences.emplace_back(ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + length);
  }
  return sequences;
}

/// Logits of the whole sequences, one tensor per sequence.
std::vector<Tensor> full_forward(const Weights& weights, const ParallelGroups& groups,
                                 const Sequences& sequences) {
  torch::NoGradGuard no_grad;
  const PackedTokens tokens = pack_tokens(sequences, torch::kCPU);
  const Tensor logits = full_logits(weights, groups, stage_forward(weights, groups, tokens));
  return logits.split_with_sizes(tokens.lengths);
}

Sequences first_tokens(const Sequences& sequences, std::size_t tokens) {
  Sequences prefixes;
  for (const auto& s : sequences) {
    prefixes.emplace_back(s.begin(),
                          s.begin() + static_cast<std::ptrdiff_t>(std::min(tokens, s.size() - 1)));
  }
  return prefixes;
}

void expect_row(const Tensor& logits, std::int64_t row, const Tensor& want) {
  EXPECT_LE(relative_error(logits[row], want), 1e-5);
}

/// Prefill of two tokens each (into `slots`), then every further token through the cache; sequences
/// leave the batch when they end.
void expect_decode_matches(const ModelSpec& spec, const std::filesystem::path& folder, int tp,
                           const std::vector<std::int64_t>& lengths,
                           const std::vector<std::int64_t>& slots) {
  const Sequences sequences = drawn_sequences(spec, lengths);
  on_ranks(spec, {tp, 1}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(spec, layout, groups, folder);
    const std::vector<Tensor> want = full_forward(weights, groups, sequences);
    CachedDecoder decoder(weights, groups);
    decoder.reserve(8, 24);
    const Sequences prompts = first_tokens(sequences, 2);
    const Tensor first =
        full_logits(weights, groups, decoder.prefill(pack_tokens(prompts, torch::kCPU), slots));
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      expect_row(first, static_cast<std::int64_t>(i),
                 want[i][static_cast<std::int64_t>(prompts[i].size()) - 1]);
    }
    for (;;) {
      std::vector<std::size_t> live;
      std::vector<std::int64_t> ids, live_slots;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        const auto position = static_cast<std::size_t>(decoder.length(slots[i]));
        if (position >= sequences[i].size()) continue;
        live.push_back(i);
        ids.push_back(sequences[i][position]);
        live_slots.push_back(slots[i]);
      }
      if (live.empty()) break;
      const Tensor logits =
          full_logits(weights, groups, decoder.step(torch::tensor(ids, torch::kInt64), live_slots));
      for (std::size_t row = 0; row < live.size(); ++row) {
        const std::int64_t position = decoder.length(live_slots[row]) - 1;
        expect_row(logits, static_cast<std::int64_t>(row), want[live[row]][position]);
      }
    }
  });
}

TEST(CachedDecoder, EqualsTheFullForwardOnEveryFamily) {
  for (const char* name : {"tiny-llama-llama3", "tiny-llama-yarn", "tiny-mistral-window",
                           "tiny-qwen2-tied", "tiny-qwen3"}) {
    const Fixture fixture = read_fixture(name);
    for (const int tp : {1, 2, 4}) {
      expect_decode_matches(fixture.spec, fixture.folder, tp, {12, 12, 12}, {0, 1, 2});
    }
  }
}

TEST(CachedDecoder, TakesRaggedLengthsAndScatteredSlots) {
  const Fixture fixture = read_fixture("tiny-qwen2");
  expect_decode_matches(fixture.spec, fixture.folder, 2, {9, 3, 17, 5}, {6, 1, 3, 0});
}

TEST(CachedDecoder, TakesUnevenHeads) {
  // Query heads 3, 3, 4 of two KV heads: the second rank's heads straddle both, 2 and 1.
  expect_decode_matches(small_model(10, 2), {}, 3, {9, 6, 9}, {0, 1, 2});
}

TEST(CachedDecoder, SamplesOfOnePromptShareItsPrefill) {
  const Fixture fixture = read_fixture("tiny-qwen2");
  on_ranks(fixture.spec, {2, 1}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    const Sequences prompt{{4, 8, 15, 16}};
    const Sequences samples{{4, 8, 15, 16, 23}, {4, 8, 15, 16, 42}};
    CachedDecoder decoder(weights, groups);
    decoder.reserve(3, 6);
    const std::vector<std::int64_t> source{0}, sources{0, 0}, copies{1, 2};
    decoder.prefill(pack_tokens(prompt, torch::kCPU), source);
    decoder.copy_slots(sources, copies);
    const Tensor logits =
        full_logits(weights, groups, decoder.step(torch::tensor({23, 42}, torch::kInt64), copies));
    const std::vector<Tensor> want = full_forward(weights, groups, samples);
    for (const std::int64_t i : {0, 1}) {
      expect_row(logits, i, want[static_cast<std::size_t>(i)][4]);
    }
  });
}

TEST(CachedDecoder, AReleasedCacheHoldsNoMemoryAndCanBeReservedAgain) {
  const ModelSpec spec = small_model(4, 2);
  on_ranks(spec, {1, 1}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(spec, layout, groups, {});
    CachedDecoder decoder(weights, groups);
    // keys and values x layers x slots x tokens x KV heads x head_dim x fp32
    EXPECT_EQ(decoder.reserve(3, 5), 2 * 2 * 3 * 5 * 2 * 8 * 4);
    decoder.release();
    EXPECT_EQ(decoder.slots(), 0);
    decoder.reserve(1, 4);
    EXPECT_EQ(decoder.length(0), 0);
  });
}

}  // namespace
}  // namespace tessera::testing
