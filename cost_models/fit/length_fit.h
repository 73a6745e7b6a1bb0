// The log-normal of a workload's responses from the few figures that a run prints of them.
//
// Pure functions; tokens.
#pragma once

#include <cstdint>

#include "cost_models/spec/workload.h"

namespace tessera {

/// Of all responses of one step, or means of these figures over steps.
struct LengthFigures {
  double mean = 0, least = 0, most = 0;
  double clipped = 0;    // part of the responses that the limit ended
  double sequences = 0;  // of a step
};

/// The clipped log-normal with the measured mean, clipped at `limit` (the longest response), whose
/// spread gives the part at the limit where more than one response in a hundred is there, and else
/// the longest of a step's responses (the median of the largest of `sequences` draws). Equal
/// lengths have no spread. Precondition: 0 < mean <= limit.
LengthSpec fit_lengths(const LengthFigures& figures, std::int64_t limit);

}  // namespace tessera
