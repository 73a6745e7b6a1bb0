// Buffers of Tessera's own executor through which data-parallel ranks share weights and gradients
// (executor/sharding).
//
// Pure functions. Elements are those of whole tensors as tensor and pipeline parallelism leave them
// to a rank. Bytes; any thread.
#pragma once

#include <cstdint>

#include "cost_models/memory.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// One rank's stage, and how it is shared.
struct SharedStage {
  std::int64_t all = 0;      // parameters of the stage
  std::int64_t layer = 0;    // of its largest layer
  std::int64_t outside = 0;  // of embedding, final norm and head
  std::int64_t layers = 0;   // in the stage
  int zero = 0;              // ZeRO's stage; 3 = FSDP
  int ranks = 1;             // that hold parts of one another's
};

/// What lies there between calls as well: the copy of its own weights that others read (ZeRO-1 and
/// 2), whole gradients that others read (ZeRO-2 and FSDP: of two layers, which take turns, and of
/// what lies outside the layers), and what was read of others until it is added.
MemoryUse share_buffers(const SharedStage& stage, const RoleDTypes& dtypes, bool trained);

/// FSDP's whole parameters in a call: of the layer at work, the next one and the one that was last,
/// whose buffer waits for its turn; of all layers where they are `kept` until their backward pass;
/// and of what lies outside.
Bytes gathered_bytes(const SharedStage& stage, const RoleDTypes& dtypes, bool kept);

}  // namespace tessera
