// WeightReshardOptions: how a reshard travels, as a run or a caller wants it.
//
// Plain data, alike on every rank. Bytes and seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost_models/layout/reshard_transport.h"
#include "cost_models/spec/dtype.h"

namespace tessera {

/// How a rank's reads from several peers follow one another.
enum class PullOrder : std::uint8_t {
  automatic,  // in steps among GPUs, else together
  together,   // all are begun at once
  in_steps,   // one peer at a time, and nobody is read by two (matched_steps)
};

struct WeightReshardOptions {
  /// copy_engine and host read peers' memory; send_recv sends messages; all_gather and window use
  /// collectives where find_gathers finds groups, else messages. automatic: copy engines among GPUs
  /// of one host; else the first reshard is done twice by each of reads (messages between hosts),
  /// messages and all-gathers, and the fastest is kept.
  ReshardTransport transport = ReshardTransport::automatic;
  /// Bound of a bucket: of the buffers when casting, of what becomes ready together when
  /// overlapping; a quarter of the stages of what travels merged. 0 = the default of each, and
  /// everything at once.
  std::int64_t bucket_bytes = 0;
  /// Type of floating-point weights on the wire, from reshard number `wire_from` on (0 = the
  /// first); before, and by default, the source's.
  std::optional<DType> wire;
  std::int64_t wire_from = 0;
  /// Messages and gathered blocks of fewer bytes travel merged; by default as was fastest by this
  /// transport (benchmarks/results).
  std::optional<std::int64_t> merge_below;
  /// Move only what changed since the last reshard, whose destination still has the rest.
  bool incremental = false;
  /// The most that an incremental reshard moves or spares as a whole.
  std::int64_t piece_bytes = std::int64_t{4} << 20;
  /// The largest single copy out of a peer's memory; 0 = as large as they come.
  std::int64_t copy_bytes = 0;
  bool verify = false;  // compare checksums at both ends; a difference is Error (internal)
  PullOrder pulls = PullOrder::automatic;
  /// The reshard is to be begun beside the producer: buckets are cut so that every source has its
  /// part of each (overlapped_rounds). The producer writes the tensors in `write_order` (rows of
  /// PlacedReshard::tensors, of all ranks); by default in their own.
  bool overlap = false;
  std::vector<int> write_order;
  double timeout_s = 600;  // what a rank waits for its peers on the host
};

}  // namespace tessera
