// The text of a training layout on a command line: "tp=2,cp=2,dp=2,zero=3,sp".
//
// A pure function; no torch.
#pragma once

#include <string_view>

#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// Keys tp, cp, pp, vpp, dp, zero (0..3), replicate (HSDP: of dp so many replicas) and the flags sp
/// and ulysses (instead of a ring over cp); the others' product gives dp where it is left out; zero
/// is 3 where dp > 1 and nothing is said. Throws Error (usage) for other words, and for degrees
/// that do not fit the model or `ranks`.
ParallelLayout train_layout(std::string_view text, const ModelSpec& model, int ranks);

}  // namespace tessera
