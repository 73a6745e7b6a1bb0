// Who sends which bytes to whom when tensors change from one layout to another.
//
// Resharding is interval intersection: for every destination rank, what it holds already and what
// it must receive, from which replica. The same ReshardPlan is priced, drawn, simulated and
// executed. Planning is a pure function of its arguments, so every rank computes the same plan and
// compares the digest. Counts are elements and bytes; ranks are global.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/layout/box.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/reshard_transport.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// One rank's part of one tensor.
struct Holding {
  int rank = 0;
  Box box;
  bool operator==(const Holding&) const = default;
};

/// A tensor and where its parts are before and after. Parts of a source may overlap (replicas); the
/// sources together must cover every destination box.
struct ShardedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  Bytes element_bytes{2};
  /// The only dim along which the planner cuts a block between two senders: the outermost in
  /// memory.
  int outer_dim = 0;
  std::vector<Holding> source, destination;
};

/// A box that moves from `source` to `destination`; source == destination means it stays: a local
/// copy, or nothing where both layouts share the storage.
struct Transfer {
  int tensor = 0;
  int source = 0;
  int destination = 0;
  Box box;
  bool operator==(const Transfer&) const = default;
};

/// Bytes of one rank in a reshard.
struct RankTraffic {
  Bytes kept, received, sent;
  bool operator==(const RankTraffic&) const = default;
};

struct ReshardPlan {
  std::vector<Transfer> transfers;   // sorted by destination, source, tensor, box; no box twice
  std::vector<RankTraffic> traffic;  // by global rank
  /// Bytes that the busiest destination receives, and the least any plan could give it:
  /// |destination(g)| - |destination(g) intersect source(g)|.
  Bytes bytes_received, lower_bound;
  Bytes total_received;
  Bytes bytes_sent;          // of the busiest sender
  Bytes min_max_sent;        // fractional optimum of the busiest sender, rounded up
  std::uint64_t digest = 0;  // xxh3 of the transfers
};

struct ReshardOptions {
  /// Node of a rank: replicas on the destination's node are preferred. Default: one node.
  std::function<int(int rank)> node_of;
};

/// Plans the reshard of all tensors together: nobody receives what it holds, every destination byte
/// arrives once, and no rank sends more than the min-max optimum plus one block. A destination that
/// the sources do not cover is an internal error of the caller (Error, internal).
ReshardPlan plan_reshard(std::span<const ShardedTensor> tensors,
                         const ReshardOptions& options = {});

/// plan_reshard of model_tensors (model_tensors.h) without its list of transfers: equal totals and
/// an equal digest, at a small part of the time and memory.
ReshardPlan reshard_totals(const ParameterTable& table, const RankMap& from, const RankMap& to,
                           DType dtype, const ReshardOptions& options = {});

}  // namespace tessera
