// Weights of a rank that are not its master weights, rounded to their type: what an optimizer has
// left stale.
//
// Each rank looks at the elements whose master weights it keeps, so that all ranks of a role
// together look at every element. Bits are compared.
#pragma once

#include "cost_models/documents/problem_list.h"
#include "executor/train/optimizer.h"
#include "executor/weights/weights.h"

namespace tessera {

/// A problem for each tensor: "rank 1, trained weights:NAME: found bytes ... differ". None where
/// master weights are in host memory and the weights are not. `rank` is named. The optimizer's
/// weights are awaited (Trainer::wake).
void find_stale_weights(const Weights& weights, const Optimizer& optimizer, int rank,
                        Problems& problems);

}  // namespace tessera
