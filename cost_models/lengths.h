// Response lengths: the clipped log-normal of a workload in closed form, or its measured lengths.
//
// Pure functions; tokens. Of the log-normal, `mean` and `cv` are those of the log-normal before it
// is clipped at `max` (an atom of probability sits at the cap): sigma^2 = ln(1 + cv^2), mu = ln
// mean - sigma^2 / 2.
#pragma once

#include <cstdint>

#include "cost_models/spec/workload.h"

namespace tessera {

/// P(length > tokens).
double survival(const LengthSpec& lengths, double tokens);

/// E[length] and E[length^2]: partial moments of the log-normal (Aitchison and Brown 1957, ch. 2).
double mean_length(const LengthSpec& lengths);
double mean_square_length(const LengthSpec& lengths);

/// Mean of the log-normal whose lengths, clipped at `max`, have this `mean` (below it).
double unclipped_mean(double mean, double cv, std::int64_t max);

/// Where lengths end: at the cap, or beyond any that is likely at all among `sequences`.
double length_horizon(const LengthSpec& lengths, double sequences);

}  // namespace tessera
