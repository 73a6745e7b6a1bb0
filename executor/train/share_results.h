// Exchanges of a pass's results among the ranks of a role: values by token or sequence, parts of a
// loss.
//
// Collective over the groups that each function names; every rank of them gets the same. Free
// functions; the tensors are on `device`.
#pragma once

#include "executor/tensor/torch.h"

#include <vector>

#include "executor/batching/loss_parts.h"
#include "executor/comm/groups.h"

namespace tessera {

/// Values of all of a micro-batch's tokens from those of this context-parallel rank; `owners`: the
/// rank of each token. Over cp; alone, what is given.
torch::Tensor whole_values(const ParallelGroups& groups, const torch::Tensor& mine,
                           const std::vector<int>& owners);

/// Everybody's outputs, `largest` per replica: from the last stage to the others of its replica
/// (pp), then over the replicas (dp).
std::vector<float> share_results(const ParallelGroups& groups,
                                 const std::vector<torch::Tensor>& mine, std::int64_t largest,
                                 torch::Device device);

/// The sum over replicas. One rank of each speaks for it; over the whole role.
LossParts share_parts(const ParallelGroups& groups, const LossParts& mine, torch::Device device);

}  // namespace tessera
