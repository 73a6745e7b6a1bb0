#include "executor/rollout/pass_tensors.h"

#include <algorithm>
#include <cstring>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Blocks of one array, in order; each begins at a multiple of 16 bytes, as kernels may want.
class Blocks {
 public:
  explicit Blocks(std::int64_t element_bytes) : unit_(16 / element_bytes) {}
  std::int64_t add(std::int64_t count) {
    const std::int64_t first = size_;
    size_ += (count + unit_ - 1) / unit_ * unit_;
    return first;
  }
  std::int64_t size() const { return size_; }

 private:
  std::int64_t unit_, size_ = 0;
};

/// Where everything begins.
struct Offsets {
  std::int64_t positions, places, prefill_ids, chosen, rows, slots, uniforms, copy_from, copy_to;
  std::int64_t words;
  std::int64_t decode_keys, decode_queries, decode_table;
  std::int64_t prefill_keys, prefill_queries, prefill_starts, prefill_table;
  std::int64_t halves;
};

Offsets offsets_of(const PassCounts& c) {
  Offsets at{};
  Blocks words(8), halves(4);
  at.positions = words.add(c.tokens());
  at.places = words.add(c.tokens());
  at.prefill_ids = words.add(c.prefill_tokens);
  at.chosen = words.add(std::max<std::int64_t>(c.decode_rows + c.drawn_texts, 1));
  at.rows = words.add(c.draws());
  at.slots = words.add(c.draws());
  at.uniforms = words.add(c.draws());
  at.copy_from = words.add(c.copies);
  at.copy_to = words.add(c.copies);
  at.words = words.size();
  at.decode_keys = halves.add(c.decode_rows);
  at.decode_queries = halves.add(c.decode_rows);
  at.decode_table = halves.add(c.decode_rows * c.row_pages);
  at.prefill_keys = halves.add(c.prefill_rows);
  at.prefill_queries = halves.add(c.prefill_rows);
  at.prefill_starts = halves.add(c.prefill_rows + 1);
  at.prefill_table = halves.add(c.prefill_rows * c.row_pages);
  at.halves = halves.size();
  return at;
}

PassCounts counts_of(const Pass& pass, std::int64_t decode_rows, std::int64_t row_pages,
                     bool pads) {
  PassCounts counts{.decode_rows = decode_rows, .row_pages = row_pages};
  for (const DecodeRow& row : pass.decode) {
    counts.longest_keys = std::max(counts.longest_keys, row.position + 1);
  }
  for (const PrefillRow& row : pass.prefill) {
    const auto tokens = static_cast<std::int64_t>(row.tokens.size());
    counts.prefill_tokens += tokens;
    counts.prefill_draws += static_cast<std::int64_t>(row.draws.size());
    counts.drawn_texts += row.draws.empty() ? 0 : 1;
    counts.copies += static_cast<std::int64_t>(row.copies.size());
    counts.longest_queries = std::max(counts.longest_queries, tokens);
    counts.longest_keys = std::max(counts.longest_keys, row.begin + tokens);
  }
  counts.prefill_rows = static_cast<std::int64_t>(pass.prefill.size());
  if (pads && counts.prefill_rows > 0) {
    std::int64_t rows = 1;
    while (rows < counts.prefill_rows) rows *= 4;
    counts.prefill_rows = rows;
  }
  return counts;
}

/// Fills the arrays of a pass.
class Packing {
 public:
  Packing(PassArrays& arrays, std::int64_t page_tokens, const Padding& padding)
      : counts_(arrays.counts),
        at_(offsets_of(arrays.counts)),
        words_(arrays.words.data_ptr<std::int64_t>()),
        halves_(arrays.halves.data_ptr<std::int32_t>()),
        page_tokens_(page_tokens),
        padding_(padding) {}

  void decode(std::span<const DecodeRow> rows) {
    for (std::int64_t i = 0; i < counts_.decode_rows; ++i) {
      const bool real = i < static_cast<std::int64_t>(rows.size());
      const std::int32_t* padding = &padding_.page;
      const DecodeRow row = real
                                ? rows[static_cast<std::size_t>(i)]
                                : DecodeRow{.draw = {.slot = padding_.slot}, .pages = {padding, 1}};
      token(row.position, row.pages);
      words_[at_.chosen + i] = i;
      draw(i, row.draw);
      halves_[at_.decode_keys + i] = static_cast<std::int32_t>(row.position + 1);
      halves_[at_.decode_queries + i] = 1;
      table(at_.decode_table, i, row.pages);
    }
  }

  void prefill(std::span<const PrefillRow> rows) {
    std::int64_t texts = 0, copies = 0;
    std::int32_t start = 0;
    for (std::int64_t i = 0; i < counts_.prefill_rows; ++i) {
      halves_[at_.prefill_starts + i] = start;
      if (i >= static_cast<std::int64_t>(rows.size())) {
        halves_[at_.prefill_queries + i] = 0;
        halves_[at_.prefill_keys + i] = 1;
        table(at_.prefill_table, i, {&padding_.page, 1});
        continue;
      }
      const PrefillRow& row = rows[static_cast<std::size_t>(i)];
      const auto tokens = static_cast<std::int64_t>(row.tokens.size());
      for (std::int64_t t = 0; t < tokens; ++t) {
        words_[at_.prefill_ids + start + t] = row.tokens[static_cast<std::size_t>(t)];
        token(row.begin + t, row.pages);
      }
      start += static_cast<std::int32_t>(tokens);
      halves_[at_.prefill_queries + i] = static_cast<std::int32_t>(tokens);
      halves_[at_.prefill_keys + i] = static_cast<std::int32_t>(row.begin + tokens);
      table(at_.prefill_table, i, row.pages);
      if (!row.draws.empty()) {
        words_[at_.chosen + counts_.decode_rows + texts] = counts_.decode_rows + start - 1;
        for (const DrawnToken& drawn : row.draws) draw(counts_.decode_rows + texts, drawn);
        texts += 1;
      }
      for (const PageCopy& copy : row.copies) {
        words_[at_.copy_from + copies] = copy.from;
        words_[at_.copy_to + copies] = copy.to;
        copies += 1;
      }
    }
    halves_[at_.prefill_starts + counts_.prefill_rows] = start;
    // A pass that draws nothing chooses a token all the same: a batch without rows is none.
    if (counts_.decode_rows + counts_.drawn_texts == 0) words_[at_.chosen] = 0;
  }

 private:
  void token(std::int64_t position, std::span<const std::int32_t> pages) {
    words_[at_.positions + tokens_] = position;
    words_[at_.places + tokens_] =
        pages[static_cast<std::size_t>(position / page_tokens_)] * page_tokens_ +
        position % page_tokens_;
    tokens_ += 1;
  }
  void draw(std::int64_t row, const DrawnToken& drawn) {
    words_[at_.rows + draws_] = row;
    words_[at_.slots + draws_] = drawn.slot;
    std::memcpy(words_ + at_.uniforms + draws_, &drawn.uniform, sizeof drawn.uniform);
    draws_ += 1;
  }
  void table(std::int64_t first, std::int64_t row, std::span<const std::int32_t> pages) {
    std::int32_t* to = halves_ + first + row * counts_.row_pages;
    TESSERA_CHECK(static_cast<std::int64_t>(pages.size()) <= counts_.row_pages);
    std::fill(std::copy(pages.begin(), pages.end(), to), to + counts_.row_pages, padding_.page);
  }

  const PassCounts& counts_;
  Offsets at_;
  std::int64_t* words_;
  std::int32_t* halves_;
  std::int64_t page_tokens_;
  Padding padding_;
  std::int64_t tokens_ = 0, draws_ = 0;
};

}  // namespace

PassArrays pack_pass(const Pass& pass, std::int64_t decode_rows, std::int64_t row_pages,
                     std::int64_t page_tokens, const Padding& padding, bool pads, bool pinned) {
  PassArrays arrays{.counts = counts_of(pass, decode_rows, row_pages, pads)};
  const Offsets at = offsets_of(arrays.counts);
  const auto options = torch::TensorOptions().pinned_memory(pinned);
  arrays.words = torch::empty({at.words}, options.dtype(torch::kLong));
  arrays.halves = torch::empty({at.halves}, options.dtype(torch::kInt));
  Packing packing(arrays, page_tokens, padding);
  packing.decode(pass.decode);
  packing.prefill(pass.prefill);
  return arrays;
}

PassTensors tensors_of(const PassArrays& arrays) {
  const PassCounts& c = arrays.counts;
  const Offsets at = offsets_of(c);
  const auto word = [&](std::int64_t first, std::int64_t count) {
    return arrays.words.narrow(0, first, count);
  };
  const auto half = [&](std::int64_t first, std::int64_t count) {
    return arrays.halves.narrow(0, first, count);
  };
  PassTensors t{.counts = c};
  t.positions = word(at.positions, c.tokens());
  t.places = word(at.places, c.tokens());
  t.prefill_ids = word(at.prefill_ids, c.prefill_tokens);
  if (c.prefill_rows > 0) {
    t.chosen = word(at.chosen, std::max<std::int64_t>(c.decode_rows + c.drawn_texts, 1));
  }
  t.rows = word(at.rows, c.draws());
  t.slots = word(at.slots, c.draws());
  t.uniforms = word(at.uniforms, c.draws()).view(torch::kDouble);
  t.copy_from = word(at.copy_from, c.copies);
  t.copy_to = word(at.copy_to, c.copies);
  t.decode = {
      .rows = c.decode_rows,
      .tokens = c.decode_rows,
      .longest_queries = 1,
      .longest_keys = c.longest_keys,
      .query_lengths = half(at.decode_queries, c.decode_rows),
      .key_lengths = half(at.decode_keys, c.decode_rows),
      .page_table =
          half(at.decode_table, c.decode_rows * c.row_pages).view({c.decode_rows, c.row_pages})};
  t.prefill = {
      .rows = c.prefill_rows,
      .tokens = c.prefill_tokens,
      .longest_queries = c.longest_queries,
      .longest_keys = c.longest_keys,
      .query_lengths = half(at.prefill_queries, c.prefill_rows),
      .key_lengths = half(at.prefill_keys, c.prefill_rows),
      .query_starts = half(at.prefill_starts, c.prefill_rows + 1),
      .page_table =
          half(at.prefill_table, c.prefill_rows * c.row_pages).view({c.prefill_rows, c.row_pages})};
  return t;
}

}  // namespace tessera
