// A language model as generation sees it: passes over tokens go in, drawn tokens come out.
//
// Sequences lie in slots, numbered from 0; a model keeps the last token that was drawn for each
// slot, so that the next pass can be launched before the host has read it. Keys and values lie in
// pages (kv_pages.h); a sequence's page table lists its pages in the order of its tokens. Passes
// take effect in the order in which they are launched. No torch here; one thread, and every
// tensor-parallel rank makes the same calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/rl/sampling.h"

namespace tessera {

/// A token to draw: what it is drawn with and the slot that it becomes the last token of.
struct DrawnToken {
  std::int64_t slot = 0;
  double uniform = 0;  // in [0, 1)
};

/// Appends the last token of draw.slot at `position` and draws the token after it.
struct DecodeRow {
  DrawnToken draw;
  std::int64_t position = 0;
  std::span<const std::int32_t> pages;  // the page of `position` is among them
};

/// Copies a page, as it is after the pass' keys and values are stored.
struct PageCopy {
  std::int32_t from = 0, to = 0;
};

/// Computes tokens [begin, begin + tokens.size()) of a text whose earlier tokens lie in its pages
/// already, and draws from the last one's logits as often as asked, which may be not at all.
struct PrefillRow {
  std::span<const std::int32_t> tokens;
  std::int64_t begin = 0;
  std::span<const std::int32_t> pages;
  std::vector<DrawnToken> draws;
  std::vector<PageCopy> copies;
};

/// One forward pass; its draws are those of the decode rows, then those of the prefill rows.
struct Pass {
  std::vector<DecodeRow> decode;
  std::vector<PrefillRow> prefill;

  std::size_t draws() const {
    std::size_t count = decode.size();
    for (const PrefillRow& row : prefill) count += row.draws.size();
    return count;
  }
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Tokens of a page.
  virtual std::int64_t page_tokens() const = 0;
  /// Begins a pass. What it points to is read before the call returns.
  virtual void launch(const Pass& pass) = 0;
  /// Waits for the oldest pass that was launched and not collected; its draws in order.
  virtual std::vector<Draw> collect() = 0;
  /// Which experts the tokens of that pass went to: [decode rows and then prefill tokens][layers
  /// with experts][experts a token]. Until the next call of collect; empty where nothing is noted.
  virtual std::span<const std::int16_t> routed_experts() const { return {}; }
};

}  // namespace tessera
