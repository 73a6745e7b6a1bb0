// The mean over steps of something that a run measured, and how far it may be off.
//
// Pure.
#pragma once

#include <vector>

namespace tessera {

struct MeasuredMean {
  double mean = 0;
  double spread = 0;     // standard deviation between steps
  double deviation = 0;  // of the mean: at least 0.3 % of it, of a single step a twentieth
};

/// All 0 where there are no values.
MeasuredMean mean_of(const std::vector<double>& values);

}  // namespace tessera
