// A pass (token_model.h) as two arrays, so that it reaches the device in two copies, and the
// tensors that lie in them.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

#include "executor/model/paged_decoder.h"
#include "executor/rollout/token_model.h"

namespace tessera {

/// How many there are of what, paddings included.
struct PassCounts {
  std::int64_t decode_rows = 0;  // tokens and draws, too
  std::int64_t prefill_rows = 0, prefill_tokens = 0, prefill_draws = 0;
  std::int64_t drawn_texts = 0;  // prefill rows that draw
  std::int64_t copies = 0;
  std::int64_t row_pages = 0;  // of a page table's row
  std::int64_t longest_queries = 1, longest_keys = 1;

  std::int64_t tokens() const { return decode_rows + prefill_tokens; }
  std::int64_t draws() const { return decode_rows + prefill_draws; }
  bool operator==(const PassCounts&) const = default;
};

/// What pads: a page and a slot that no sequence has.
struct Padding {
  std::int32_t page = 0;
  std::int64_t slot = 0;
};

struct PassArrays {
  PassCounts counts;
  torch::Tensor words;   // int64
  torch::Tensor halves;  // int32
};

/// The pass in host memory (pinned where `pinned`). Page tables have `row_pages` columns; the
/// decode rows are padded to `decode_rows`, and with `pads` the prefill rows to a power of four.
PassArrays pack_pass(const Pass& pass, std::int64_t decode_rows, std::int64_t row_pages,
                     std::int64_t page_tokens, const Padding& padding, bool pads, bool pinned);

/// Tensors that share the arrays' memory.
struct PassTensors {
  PassCounts counts;
  torch::Tensor positions, places, prefill_ids;  // int64
  torch::Tensor chosen;                          // int64; undefined where the pass only decodes
  torch::Tensor rows, slots, uniforms;           // of every draw: int64, int64, fp64
  torch::Tensor copy_from, copy_to;              // int64
  fused::PagedRows decode, prefill;
};
PassTensors tensors_of(const PassArrays& arrays);

}  // namespace tessera
