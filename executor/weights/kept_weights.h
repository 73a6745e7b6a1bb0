// The start of a rank's weights: what it keeps, read from a folder or drawn, and nothing else.
//
// With FSDP a rank keeps its shards (stored_box) of the tensors that it computes with; the rest
// stays as it is, zero, until training has cut the weights. With every other layout it keeps all.
#pragma once

#include <cstdint>
#include <filesystem>

#include "executor/weights/weights.h"

namespace tessera {

/// load_weights of what the rank keeps.
void load_kept_weights(Weights& weights, const std::filesystem::path& folder, std::uint64_t seed,
                       Problems& problems);

/// Draws it with torch's number of threads. The values are those of the folder that `init-model`
/// writes with the same seed, in the type of the weights: they depend on neither the layout nor the
/// number of threads. `model`: of the folder; a value head that it does not have is drawn as
/// load_weights does. `deviation`: of the matrices (initializer_range_of).
void draw_kept_weights(Weights& weights, const ModelSpec& model, double deviation,
                       std::uint64_t seed);

/// The part of a row's tensor, in memory order, that lies in `slot`, a slot of what the rank
/// computes with or keeps.
torch::Tensor part_in(const Weights& weights, const ArenaSlot& slot);

/// Slots of what the rank keeps.
std::vector<ArenaSlot> kept_slots(const Weights& weights);

}  // namespace tessera
