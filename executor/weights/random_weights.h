// Random weights without a file: every rank draws what it holds, and nothing else.
//
// The values are those of the folder that `init-model` writes with the same seed, in the type of
// the weights: they depend on neither the layout nor the number of threads.
#pragma once

#include <cstdint>

#include "executor/weights/weights.h"

namespace tessera {

/// Draws the rank's part of every tensor, with torch's number of threads. `model`: of the folder; a
/// value head that it does not have is drawn as load_weights does. `deviation`: of the matrices
/// (initializer_range_of).
void draw_weights(Weights& weights, const ModelSpec& model, double deviation, std::uint64_t seed);

}  // namespace tessera
