// Texts that are given are computed piece by piece over a cache in pages, for tests of the paged
// decoder. One object per rank and test.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "executor/model/paged_decoder.h"
#include "executor/model/scores.h"
#include "executor/rollout/pass_tensors.h"

namespace tessera::testing {

using Texts = std::vector<std::vector<std::int64_t>>;

/// The next `tokens` tokens of text `index`.
struct Piece {
  std::size_t index = 0;
  std::int64_t tokens = 1;
};

class PagedTexts {
 public:
  /// Pages are dealt out scattered: text 0 gets every n-th one.
  PagedTexts(const Weights& weights, const ParallelGroups& groups, const Texts& texts,
             std::int64_t page_tokens, bool pads = false)
      : weights_(weights),
        groups_(groups),
        texts_(texts),
        page_tokens_(page_tokens),
        pads_(pads),
        decoder_(weights, groups),
        done_(texts.size(), 0),
        pages_(texts.size()) {
    std::size_t longest = 1;
    for (const auto& text : texts) longest = std::max(longest, text.size());
    row_pages_ = (static_cast<std::int64_t>(longest) + page_tokens - 1) / page_tokens;
    const auto count = static_cast<std::int64_t>(texts.size());
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t p = 0; p < row_pages_; ++p) {
        pages_[static_cast<std::size_t>(t)].push_back(static_cast<std::int32_t>(p * count + t));
      }
    }
    const std::int64_t pages = count * row_pages_ + 1;
    memory_ = torch::zeros({pages * decoder_.page_bytes(page_tokens) / size_of(weights.dtype)},
                           weights.storage.options());
    decoder_.place(memory_, pages, page_tokens, row_pages_ * page_tokens);
  }

  std::int64_t done(std::size_t index) const { return done_[index]; }
  bool ended(std::size_t index) const {
    return done_[index] == static_cast<std::int64_t>(texts_[index].size());
  }

  /// Logits after the last token of each piece, [pieces, vocabulary] on the CPU. Single tokens of
  /// begun texts decode; they come first.
  torch::Tensor advance(std::span<const Piece> pieces) {
    Pass pass;
    std::vector<std::int64_t> ids;
    std::vector<std::vector<std::int32_t>> tokens(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t text = pieces[i].index;
      const std::int64_t first = done_[text];
      done_[text] += pieces[i].tokens;
      if (first > 0 && pieces[i].tokens == 1) {
        pass.decode.push_back({.position = first, .pages = pages_[text]});
        ids.push_back(texts_[text][static_cast<std::size_t>(first)]);
        continue;
      }
      const auto from = texts_[text].begin() + first;
      tokens[i].assign(from, from + pieces[i].tokens);
      pass.prefill.push_back(
          {.tokens = tokens[i], .begin = first, .pages = pages_[text], .draws = {{}}});
    }
    const auto rows = static_cast<std::int64_t>(pass.decode.size());
    const std::int64_t padded = pads_ && rows > 0 ? rows + 2 : rows;
    ids.resize(static_cast<std::size_t>(padded), 0);
    const Padding padding{
        .page = static_cast<std::int32_t>(static_cast<std::int64_t>(texts_.size()) * row_pages_)};
    PassArrays arrays =
        pack_pass(pass, padded, row_pages_, page_tokens_, padding, pads_, /*pinned=*/false);
    arrays.words = arrays.words.to(weights_.device());
    arrays.halves = arrays.halves.to(weights_.device());
    const PassTensors t = tensors_of(arrays);
    const torch::Tensor all =
        torch::cat({torch::tensor(ids, torch::kLong).to(weights_.device()), t.prefill_ids});
    const torch::Tensor hidden = decoder_.forward({.ids = all,
                                                   .positions = t.positions,
                                                   .places = t.places,
                                                   .decode = t.decode,
                                                   .prefill = t.prefill,
                                                   .chosen = t.chosen});
    const torch::Tensor logits = full_logits(weights_, groups_, hidden).cpu();
    return torch::cat({logits.narrow(0, 0, rows), logits.slice(0, padded)});
  }

 private:
  const Weights& weights_;
  const ParallelGroups& groups_;
  const Texts& texts_;
  std::int64_t page_tokens_, row_pages_ = 0;
  bool pads_;
  PagedDecoder decoder_;
  std::vector<std::int64_t> done_;
  std::vector<std::vector<std::int32_t>> pages_;
  torch::Tensor memory_;
};

}  // namespace tessera::testing
