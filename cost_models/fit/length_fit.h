// The log-normal of a workload's responses from the few figures that a run prints of them.
//
// Pure functions; tokens.
#pragma once

#include <optional>

#include "cost_models/spec/workload.h"

namespace tessera {

/// Of all responses of one step, or means of these figures over steps; none = the run does not say.
struct LengthFigures {
  double mean = 0;
  std::optional<double> least, most;
  std::optional<double> clipped;  // part of the responses that the limit ended
  double sequences = 0;           // of a step
};

/// The clipped log-normal with the measured mean, clipped at `planned`'s longest response, whose
/// spread gives the part at that limit where more than one response in a hundred is there, and else
/// the longest of a step's responses (the median of the largest of `sequences` draws). Equal
/// lengths have no spread; where neither figure is known the spread is the planned one. The result
/// is one that a workload may have: its mean before clipping is at most the limit, which bounds the
/// spread where the limit ended most responses.
/// Precondition: 0 < mean <= the limit, but for rounding.
LengthSpec fit_lengths(const LengthFigures& figures, const LengthSpec& planned);

}  // namespace tessera
