// Lengths of a step's responses, drawn from a workload's clipped log-normal or from its
// measured lengths.
//
// Counter-based: a draw depends on (seed, step, prompt, sample) only, never on replica, layout or
// order. The bits come from SplitMix64 (Steele, Lea, Flood 2014), the length from length_at
// (cost_models/lengths.h). Tokens; pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

/// At least one token, at most `lengths.max` (where it is stated).
std::int64_t draw_length(const LengthSpec& lengths, std::uint64_t seed, std::int64_t step,
                         std::int64_t prompt, std::int64_t sample);

/// Response lengths of all sequences of a step; sample s of prompt p at p * samples_per_prompt + s.
std::vector<std::int64_t> draw_lengths(const Workload& workload, std::uint64_t seed,
                                       std::int64_t step);

}  // namespace tessera
