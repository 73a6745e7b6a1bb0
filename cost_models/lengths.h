// Response lengths: the clipped log-normal of a workload in closed form, or its measured lengths.
//
// Pure functions; tokens. Of the log-normal, `mean` and `cv` are those of the log-normal before it
// is clipped at `max` (an atom of probability sits at the cap): sigma^2 = ln(1 + cv^2), mu = ln
// mean - sigma^2 / 2.
#pragma once

#include <cstdint>

#include "cost_models/spec/workload.h"

namespace tessera {

/// x with P(N(0, 1) <= x) = p, by Acklam's rational approximation (relative error below 1.2e-9).
/// Precondition: 0 < p < 1.
double normal_quantile(double p);

/// The length that this share of the responses do not exceed: whole tokens, at least one, at most
/// `max` (where it is stated). Precondition: 0 < share < 1.
std::int64_t length_at(const LengthSpec& lengths, double share);

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
