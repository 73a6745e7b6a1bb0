// A ReshardPlan compiled to reads: what one rank copies out of whose memory to where in its own.
//
// The mirror image of ByteSchedule's messages, for ranks that see one another's memory. Pure
// functions of metadata; offsets in bytes from the start of a memory; ranks are global.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/arena_layout.h"
#include "executor/arena/byte_schedule.h"

namespace tessera {

/// The bytes of a box in the memory of `rank`, ordered as LocateBox says.
using LocateOnRank = std::function<std::vector<ByteRange>(int rank, int tensor, const Box& box)>;

/// Bytes that a transfer of one of `tensors` moves.
inline std::int64_t bytes_moved(const Transfer& transfer, std::span<const ShardedTensor> tensors) {
  return volume(transfer.box) * tensors[static_cast<std::size_t>(transfer.tensor)].element_bytes;
}

/// One contiguous read; `transfer` is its index in the plan.
struct Pull {
  int peer = 0;
  int transfer = 0;
  std::int64_t from = 0, to = 0, bytes = 0;
  bool operator==(const Pull&) const = default;
};

/// This rank's reads of the transfers that `wanted` selects (all, by default), peer by peer
/// beginning with the next higher rank, so that not all ranks read from the same one first; what
/// stays on the rank comes last. Adjacent reads stay apart: each belongs to one transfer.
std::vector<Pull> compile_pulls(const ReshardPlan& plan, int rank, int ranks,
                                const LocateOnRank& source, const LocateBox& destination,
                                const std::function<bool(const Transfer&)>& wanted = {});

/// Joins reads that follow one another on both ends.
std::vector<Pull> joined(std::span<const Pull> pulls);

/// `plan` cut so that in no bucket a rank receives or sends more than `bound` bytes, unless one row
/// of a tensor is larger. Buckets follow the order of the tensors; a tensor is cut along its
/// outermost dim. `count_kept`: what stays on a rank counts as sent and received, too. One bucket
/// when `bound` is 0.
std::vector<ReshardPlan> cut_into_buckets(const ReshardPlan& plan,
                                          std::span<const ShardedTensor> tensors,
                                          std::int64_t bound, bool count_kept = false);

/// `plan` cut at equal fractions of what each pair of ranks exchanges, so that in every bucket all
/// sources have their part: bucket k ends at `ends[k]` (rising, the last is 1), rounded to rows
/// that fill words of 16 bytes.
/// Tensors follow in `order`, those that it does not name behind, in the order of the tensors.
std::vector<ReshardPlan> cut_in_proportion(const ReshardPlan& plan,
                                           std::span<const ShardedTensor> tensors,
                                           std::span<const double> ends,
                                           std::span<const int> order = {});

/// `plan` with every transfer cut along its tensor's outermost dim into parts of at most `bytes`,
/// unless one row is larger. Totals stay.
ReshardPlan cut_into_pieces(const ReshardPlan& plan, std::span<const ShardedTensor> tensors,
                            std::int64_t bytes);

}  // namespace tessera
