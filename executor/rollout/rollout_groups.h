// The communicators of the ranks that generate.
//
// Those of make_groups; on GPUs of one host the tensor-parallel ranks of a replica add up what a
// decode step has by their peers' memory (executor/storage/peer_sums.h).
#pragma once

#include "executor/comm/groups.h"
#include "executor/tensor/torch.h"

namespace tessera {

/// Collective over `world` and `host`, as make_groups is; `host` is the same ranks on host memory.
/// `stream`: the cudaStream_t that torch computes on, nullptr on the CPU. `decorate` gets groups
/// that add up so already.
ParallelGroups make_rollout_groups(Communicator& world, Communicator& host, const RankMap& map,
                                   torch::Device device, void* stream,
                                   const GroupDecorator& decorate = {});

}  // namespace tessera
