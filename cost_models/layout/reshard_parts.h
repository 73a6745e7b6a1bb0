// The pieces of a reshard on their way from the overlays to the transfers.
//
// For reshard_plan.cc alone. Plain values that point into the overlays; counts are bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost_models/layout/box.h"
#include "cost_models/layout/sender_balance.h"
#include "cost_models/spec/units.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

/// A cell of an overlay, with what every tensor that lies so asks of it.
struct Piece {
  Box box;
  int outer_dim = 0;
  bool last = true;        // of its region
  Bytes bytes, row_bytes;  // all of it; of one index of the outer dim

  Interval rows() const {
    return box.rank > 0 ? box.dims[static_cast<size_t>(outer_dim)] : Interval{0, 1};
  }
};

/// Rows [lo, hi) of a piece's outer dim that a destination receives from one source.
struct Part {
  int tensor = 0, source = 0;
  const Piece* piece = nullptr;
  Interval rows;

  Interval side(int dim) const {
    return dim == piece->outer_dim ? rows : piece->box.dims[static_cast<size_t>(dim)];
  }
};

inline bool box_less(const Part& a, const Part& b) {
  for (int d = 0; d < a.piece->box.rank; ++d) {
    const Interval x = a.side(d), y = b.side(d);
    if (x.lo != y.lo) return x.lo < y.lo;
    if (x.hi != y.hi) return x.hi < y.hi;
  }
  return false;
}

/// Hands out the bytes of one class to its holders, in the order of the shares.
class Dispenser {
 public:
  Dispenser() = default;
  explicit Dispenser(const std::vector<SenderShare>& shares)
      : next_(shares.data()), end_(next_ + shares.size()) {
    if (!shares.empty()) boundary_ = next_->bytes;
  }

  int holder() const { return next_->holder; }
  /// Of `most` rows the first that the holder in hand sends.
  std::int64_t rows(Bytes row_bytes, std::int64_t most) const {
    if (end_ - next_ <= 1) return most;
    const Bytes left = std::max(Bytes{}, boundary_ - position_);
    return left < most * row_bytes ? left.value / row_bytes.value : most;
  }
  void sent(Bytes bytes) { position_ += bytes; }
  void advance() { boundary_ += (++next_)->bytes; }

 private:
  const SenderShare *next_ = nullptr, *end_ = nullptr;
  Bytes position_, boundary_;
};

/// xxh3 of transfers, in 64-bit words.
class TransferDigest {
 public:
  TransferDigest() : state_(XXH3_createState(), &XXH3_freeState) {
    XXH3_64bits_reset(state_.get());
  }

  void add(const Part& part, int destination) {
    std::int64_t* next = words_.data() + used_;
    *next++ = part.tensor;
    *next++ = part.source;
    *next++ = destination;
    for (int d = 0; d < part.piece->box.rank; ++d) {
      const Interval side = part.side(d);
      *next++ = side.lo;
      *next++ = side.hi;
    }
    used_ = static_cast<size_t>(next - words_.data());
    if (used_ + kMostWords > words_.size()) hash();
  }
  std::uint64_t value() {
    hash();
    return XXH3_64bits_digest(state_.get());
  }

 private:
  void hash() {
    XXH3_64bits_update(state_.get(), words_.data(), used_ * sizeof(std::int64_t));
    used_ = 0;
  }

  static constexpr size_t kMostWords = 3 + 2 * kMaxTensorRank;  // of a transfer

  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
  std::array<std::int64_t, 4096> words_;
  size_t used_ = 0;
};

}  // namespace tessera
