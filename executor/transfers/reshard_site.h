// PlacedReshard: what a reshard moves, and where it lies. ReshardSite: the rank's memory for it.
//
// Plain values, made once from metadata by who builds the reshard (Reshard::placed) and kept by
// it. Memory and communicators are the caller's. Bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/memory_ops.h"
#include "executor/arena/pulls.h"
#include "executor/comm/communicator.h"
#include "executor/storage/block_copies.h"
#include "executor/storage/shared_block.h"

namespace tessera {

/// The transfers and where their bytes lie: equal on every rank but for `destination`.
struct PlacedReshard {
  ReshardPlan plan;
  std::vector<ShardedTensor> tensors;  // element_bytes of the source
  LocateOnRank source;                 // in the source memory of any rank
  LocateBox destination;               // in this rank's destination memory
  DType source_type = DType::bf16, destination_type = DType::bf16;
};

/// This rank's memory and how it reaches the others'.
struct ReshardSite {
  Communicator* world = nullptr;  // messages between source and destination memory
  Communicator* host = nullptr;   // control data in host memory; may be `world`
  /// Source memory that peers may map; nullptr = messages only. Every rank brings one, or none.
  const SharedBlock* block = nullptr;
  const void* source = nullptr;  // the block's data when there is one
  void* destination = nullptr;
  BlockCopies* copies = nullptr;  // needed with a block
  MemoryOps* ops = nullptr;       // nullptr = host memory
  /// Communicator of some ranks of the world, for the gathering transports (e.g. one with
  /// registered windows); nullptr = world->split. `stage`, equally large on every member and
  /// nullptr on other ranks, is gathered into, too. Called alike on every rank.
  std::function<std::unique_ptr<Communicator>(std::span<const int> members,
                                              const SharedBlock* stage)>
      split;
  /// Memory of the same kind, for buffers; nullptr = host memory.
  std::function<std::unique_ptr<SharedBlock>(std::int64_t bytes)> make_block;
  /// Lets the world's messages go straight from and to memory of the site's kind while the value
  /// lives; nullptr = no such way.
  std::function<std::shared_ptr<const void>(const SharedBlock& memory)> register_memory;
  /// Meets on the streams of the copies (make_stream_barrier); nullptr = the host's threads meet.
  std::function<std::unique_ptr<StreamBarrier>()> make_barrier;
};

}  // namespace tessera
