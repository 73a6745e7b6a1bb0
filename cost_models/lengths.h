// Response lengths: the clipped log-normal of a workload in closed form, or its measured lengths.
//
// Pure functions; tokens. Of the log-normal, `mean` and `cv` are those of the log-normal before it
// is clipped at `max` (an atom of probability sits at the cap): sigma^2 = ln(1 + cv^2), mu = ln
// mean - sigma^2 / 2.
#pragma once

#include <functional>

#include "cost_models/spec/workload.h"

namespace tessera {

/// P(length > tokens).
double survival(const LengthSpec& lengths, double tokens);

/// E[length] and E[length^2]: partial moments of the log-normal (Aitchison and Brown 1957, ch. 2).
double mean_length(const LengthSpec& lengths);
double mean_square_length(const LengthSpec& lengths);

/// Time of decoding `sequences` sequences at once until the last one ends, `step(alive, context)`
/// being the time of one step: the sum over token positions k of P(any alive) step(E[alive | any],
/// prompt + k), with P(any) = 1 - (1 - survival(k))^sequences. Evaluated on `segments` equal parts.
double decode_seconds(const LengthSpec& lengths, double prompt_tokens, double sequences,
                      const std::function<double(double alive, double context)>& step,
                      int segments = 32);

/// The same where only `slots` of them run at once and the next one enters as soon as one ends:
/// what a slot does is a renewal process until nobody waits (Feller 1971, ch. XI), so those that
/// run are of all ages, those that run last began at different times. Equal lengths run in waves.
double queue_seconds(const LengthSpec& lengths, double prompt_tokens, double sequences,
                     double slots, const std::function<double(double alive, double context)>& step,
                     int segments = 32);

/// E[longest of `sequences` responses]: decode_seconds with steps of one second.
double longest_length(const LengthSpec& lengths, double sequences);

}  // namespace tessera
