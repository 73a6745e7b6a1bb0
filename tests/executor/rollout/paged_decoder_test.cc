// Decoding over pages gives the logits of the full forward pass, however the texts are cut.
#include "executor/model/paged_decoder.h"

#include <gmock/gmock.h>

#include "tests/executor/model/fixture.h"
#include "tests/executor/rollout/paged_texts.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

Texts drawn_texts(const ModelSpec& spec, const std::vector<std::int64_t>& lengths) {
  torch::manual_seed(11);
  Texts texts;
  for (const std::int64_t length : lengths) {
    const Tensor ids = torch::randint(spec.vocab, {length}, torch::kInt64);
    texts.emplace_back(ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + length);
  }
  return texts;
}

/// Logits of the whole texts, one tensor per text.
std::vector<Tensor> full_forward(const Weights& weights, const ParallelGroups& groups,
                                 const Texts& texts) {
  const torch::NoGradGuard no_grad;
  const PackedTokens tokens = pack_tokens(texts, torch::kCPU);
  const Tensor logits = full_logits(weights, groups, stage_forward(weights, groups, tokens));
  return logits.split_with_sizes(tokens.lengths);
}

void expect_rows(const PagedTexts& texts, const std::vector<Piece>& pieces, const Tensor& logits,
                 const std::vector<Tensor>& want) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::int64_t position = texts.done(pieces[i].index) - 1;
    EXPECT_LE(relative_error(logits[static_cast<std::int64_t>(i)], want[pieces[i].index][position]),
              1e-5)
        << "text " << pieces[i].index << ", token " << position;
  }
}

/// Two tokens of each text, then one at a time; texts leave the batch when they end.
void expect_decode_matches(const ModelSpec& spec, const std::filesystem::path& folder, int tp,
                           const std::vector<std::int64_t>& lengths, bool pads = false) {
  const Texts texts = drawn_texts(spec, lengths);
  on_ranks(spec, {tp, 1}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(spec, layout, groups, folder);
    const std::vector<Tensor> want = full_forward(weights, groups, texts);
    PagedTexts paged(weights, groups, texts, 4, pads);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < texts.size(); ++i) pieces.push_back({i, 2});
    while (!pieces.empty()) {
      expect_rows(paged, pieces, paged.advance(pieces), want);
      pieces.clear();
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (!paged.ended(i)) pieces.push_back({i, 1});
      }
    }
  });
}

TEST(PagedDecoder, EqualsTheFullForwardOnEveryFamily) {
  for (const char* name :
       {"tiny-llama-llama3", "tiny-llama-yarn", "tiny-mistral-window", "tiny-qwen2-tied",
        "tiny-qwen3", "tiny-mixtral-tied", "tiny-qwen2-moe", "tiny-qwen3-moe"}) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    for (const int tp : {1, 2, 4}) {
      expect_decode_matches(fixture.spec, fixture.folder, tp, {12, 12, 12});
    }
  }
}

TEST(PagedDecoder, TakesRaggedLengthsAndRowsThatPad) {
  const Fixture fixture = read_fixture("tiny-qwen2");
  expect_decode_matches(fixture.spec, fixture.folder, 2, {9, 3, 17, 5});
  expect_decode_matches(fixture.spec, fixture.folder, 1, {9, 3, 17, 5}, /*pads=*/true);
}

TEST(PagedDecoder, TakesUnevenHeads) {
  // Query heads 3, 3, 4 of two KV heads: the second rank's heads straddle both, 2 and 1.
  expect_decode_matches(small_model(10, 2), {}, 3, {9, 6, 9});
}

TEST(PagedDecoder, PiecesOfPromptsAndSingleTokensShareABatch) {
  for (const char* name : {"tiny-qwen2", "tiny-mistral-window"}) {
    for (const bool pads : {false, true}) {
      SCOPED_TRACE(::testing::Message() << name << (pads ? ", padded" : ""));
      const Fixture fixture = read_fixture(name);
      const Texts texts = drawn_texts(fixture.spec, {21, 14, 9, 11});
      on_ranks(fixture.spec, {2, 1},
               [&](const ParallelLayout& layout, const ParallelGroups& groups) {
                 const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
                 const std::vector<Tensor> want = full_forward(weights, groups, texts);
                 PagedTexts paged(weights, groups, texts, 4, pads);
                 const std::vector<std::vector<Piece>> passes = {{{0, 5}},
                                                                 {{0, 1}, {1, 3}},
                                                                 {{0, 1}, {1, 1}, {2, 9}, {3, 2}},
                                                                 {{0, 7}, {1, 10}, {3, 9}},
                                                                 {{0, 1}},
                                                                 {{0, 6}}};
                 for (const auto& pieces : passes)
                   expect_rows(paged, pieces, paged.advance(pieces), want);
                 for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(paged.ended(i));
               });
    }
  }
}

}  // namespace
}  // namespace tessera::testing
