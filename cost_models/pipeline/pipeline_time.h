// How long a pipeline takes whose stages differ.
//
// Pure functions. What a stage sends counts as part of its operation: the sender waits
// until it has arrived.
#pragma once

#include <span>

#include "cost_models/spec/units.h"

namespace tessera {

/// The makespan of `micro_batches` under 1F1B (Narayanan et al. 2021, sec. 2.2) on stages whose
/// forward and backward passes take forward[s] and backward[s]; exact.
///
/// The longest path of the schedule runs through one stage s in its steady state, m - (p - s)
/// times. It reaches that stage's first backward pass through forwards down to some stage q >= s,
/// the extra ones of the warm-up (as many as stage q's, p - 1 - q) at the slowest of the stages up
/// to q, and the way back from q to s. Draining is the same with the directions exchanged. Stages
/// with fewer than p - s micro-batches run all forwards, then all backwards: s = q.
Seconds one_f_one_b_seconds(std::span<const Seconds> forward, std::span<const Seconds> backward,
                            double micro_batches);

}  // namespace tessera
