// Experts by token between a batch's sequences, in host memory, and the rows of its micro-batches
// on each rank: what is replayed and what is noted (executor/model/router_replay.h).
//
// A sequence carries two bytes a token, layer with experts and choice; a pass copies its chunk's
// layers of one micro-batch to the device.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>
#include <vector>

#include "executor/batching/batch.h"
#include "executor/comm/groups.h"
#include "executor/model/router_replay.h"
#include "executor/train/packing.h"

namespace tessera {

/// The routed_experts of a micro-batch's sequences on the rows that this rank's chunk sees; nothing
/// where no sequence has any. Precondition: a sequence's are of whole tokens of this model.
RouterReplay replay_of(const Weights& weights, int chunk, std::span<const TokenSequence> batch,
                       std::span<const int> sequences, const PackedMicroBatch& packed,
                       const ContextSlice& slice);

/// The experts of one pass over a batch, as its sequences carry them.
class ExpertNotes {
 public:
  /// Keeps references. Nothing is noted unless `wanted`.
  ExpertNotes(const Weights& weights, std::span<const TokenSequence> batch, bool wanted);

  /// Where the chunk's layers write the micro-batch's.
  torch::Tensor room(int chunk, const PackedMicroBatch& packed) const;
  /// Takes what they wrote; empty room gives nothing.
  void take(const torch::Tensor& room, int chunk, std::span<const int> sequences,
            const PackedMicroBatch& packed, const ContextSlice& slice);
  /// All ranks' by sequence; empty where nothing was wanted. Collective over the role.
  std::vector<std::vector<std::int16_t>> shared(const ParallelGroups& groups);

 private:
  const Weights& weights_;
  std::span<const TokenSequence> batch_;
  torch::Tensor all_;                // int16 [tokens, layers with experts, experts a token]
  std::vector<std::int64_t> first_;  // token of each sequence
};

/// RouterReplay::compared of a pass over the batch; undefined where no sequence has experts.
torch::Tensor room_to_compare(std::span<const TokenSequence> batch, torch::Device device);
/// Adds the share of the replayed choices (one a token and layer) for which the router itself would
/// now choose other experts, of all ranks, as "router_replay_mismatch_fraction". Collective over
/// the role where `compared` (RouterReplay::compared) is defined.
void add_mismatch(const ParallelGroups& groups, torch::Tensor compared, UpdateResult& result);

}  // namespace tessera
