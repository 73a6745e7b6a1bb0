#include "executor/train/packing.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "cost_models/documents/check.h"
#include "executor/tensor/to_device.h"

namespace tessera {
namespace {

/// Everything about a batch before it is dealt out; rows count through all sequences.
struct WholeBatch {
  std::vector<std::int64_t> ids, positions, lengths, rows, targets, last_rows;

  void add(const TokenSequence& sequence) {
    TESSERA_CHECK(!sequence.prompt.empty() && !sequence.response.empty());
    const auto first = static_cast<std::int64_t>(ids.size());
    ids.insert(ids.end(), sequence.prompt.begin(), sequence.prompt.end());
    ids.insert(ids.end(), sequence.response.begin(), sequence.response.end());
    targets.insert(targets.end(), sequence.response.begin(), sequence.response.end());
    lengths.push_back(sequence.tokens());
    for (std::int64_t i = 0; i < sequence.tokens(); ++i) positions.push_back(i);
    const std::int64_t last = first + sequence.tokens() - 1;
    const std::int64_t predicting = last - static_cast<std::int64_t>(sequence.response.size());
    for (std::int64_t row = predicting; row < last; ++row) rows.push_back(row);
    last_rows.push_back(last);
  }
  void pad(std::int64_t tokens) {
    if (tokens == 0) return;
    ids.resize(ids.size() + static_cast<std::size_t>(tokens), 0);
    for (std::int64_t i = 0; i < tokens; ++i) positions.push_back(i);
    lengths.push_back(tokens);
  }
};

/// One rank's rows, in order.
class HeldRows {
 public:
  HeldRows(std::span<const std::int64_t> lengths, const ContextSlice& slice)
      : parts_(held_tokens(lengths, slice)) {
    std::int64_t first = 0;
    for (const Interval& part : parts_) {
      firsts_.push_back(first);
      first += part.size();
    }
  }
  const std::vector<Interval>& parts() const { return parts_; }
  /// The place of a row of the whole batch among them, or -1.
  std::int64_t place(std::int64_t row) const {
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), row,
                                        [](std::int64_t r, const Interval& p) { return r < p.lo; });
    if (after == parts_.begin()) return -1;
    const auto i = static_cast<std::size_t>(after - parts_.begin() - 1);
    return row < parts_[i].hi ? firsts_[i] + row - parts_[i].lo : -1;
  }

 private:
  std::vector<Interval> parts_;
  std::vector<std::int64_t> firsts_;
};

int owner_of(std::int64_t row, const std::vector<HeldRows>& ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].place(row) >= 0) return static_cast<int>(rank);
  }
  TESSERA_CHECK(false);
  return -1;
}

}  // namespace

PackedMicroBatch pack_micro_batch(std::span<const TokenSequence> batch,
                                  std::span<const int> sequences, torch::Device device,
                                  std::int64_t multiple, const ContextSlice& slice) {
  WholeBatch whole;
  for (const int s : sequences) whole.add(batch[static_cast<std::size_t>(s)]);
  const auto real = static_cast<std::int64_t>(whole.ids.size());
  const ContextRows own = context_rows(whole.lengths, slice, multiple);
  whole.pad(own.padding);

  std::vector<HeldRows> ranks;
  for (int rank = 0; rank < slice.size; ++rank) {
    ranks.emplace_back(whole.lengths, slice.of(rank));
  }
  const HeldRows& held = ranks[static_cast<std::size_t>(slice.rank)];
  PackedMicroBatch packed;
  std::array<std::vector<std::int64_t>, 5> parts;  // ids, positions, rows, targets, last rows
  auto& [ids, positions, rows, targets, last_rows] = parts;
  for (const Interval& part : held.parts()) {
    ids.insert(ids.end(), whole.ids.begin() + part.lo, whole.ids.begin() + part.hi);
    positions.insert(positions.end(), whole.positions.begin() + part.lo,
                     whole.positions.begin() + part.hi);
    packed.held += std::clamp<std::int64_t>(real - part.lo, 0, part.size());
  }
  ids.resize(static_cast<std::size_t>(own.rows), 0);
  positions.resize(static_cast<std::size_t>(own.rows), 0);
  for (std::size_t i = 0; i < whole.rows.size(); ++i) {
    packed.row_owners.push_back(owner_of(whole.rows[i], ranks));
    if (packed.row_owners.back() != slice.rank) continue;
    rows.push_back(held.place(whole.rows[i]));
    targets.push_back(whole.targets[i]);
  }
  for (const std::int64_t row : whole.last_rows) {
    packed.last_owners.push_back(owner_of(row, ranks));
    if (packed.last_owners.back() == slice.rank) last_rows.push_back(held.place(row));
  }

  std::vector<std::int64_t> together, sizes;
  for (const std::vector<std::int64_t>& part : parts) {
    together.insert(together.end(), part.begin(), part.end());
    sizes.push_back(static_cast<std::int64_t>(part.size()));
  }
  const std::vector<torch::Tensor> there =
      to_device(torch::tensor(together, torch::kInt64), device).split_with_sizes(sizes);
  packed.tokens = {.ids = there[0], .positions = there[1], .lengths = std::move(whole.lengths)};
  packed.rows = there[2];
  packed.targets = there[3];
  packed.last_rows = there[4];
  return packed;
}

}  // namespace tessera
