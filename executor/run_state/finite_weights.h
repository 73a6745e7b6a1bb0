// Whether weights are numbers: what diverged, or was broken before, holds NaN or infinities.
//
// Each rank looks at what it holds itself; one pass over memory, on its device. Pure.
#pragma once

#include <string>

#include "executor/train/optimizer.h"
#include "executor/weights/weights.h"

namespace tessera {

/// The name of a tensor of the rank's that holds a number which is NaN or infinite; empty where
/// none does.
std::string tensor_not_finite(const Weights& weights);
/// The same of the master weights that the rank keeps.
std::string tensor_not_finite(const Weights& weights, const Optimizer& optimizer);

}  // namespace tessera
