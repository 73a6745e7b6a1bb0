// What a call's phase says of its work: the token limit that it takes, and whether it trains.
//
// Pure functions; limits in tokens of a micro-batch.
#pragma once

#include <cstdint>

#include "cost_models/memory.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// The limit of a call's micro-batches, by its phase; nullptr: it runs no model.
std::int64_t Batching::*limit_of(Phase phase);

/// Tokens that a micro-batch of the phase may have (a prefill batch for gen); 0 = no such call.
std::int64_t token_limit(const Batching& batching, Phase phase);

/// Sequences of a micro-batch of the phase where the engine counts these; 0 = the tokens cut.
std::int64_t sequence_limit(const Batching& batching, Phase phase);

/// Whether a call of the phase updates its role's weights: those are the calls that take the limit
/// of updates.
bool updates(Phase phase);

}  // namespace tessera
