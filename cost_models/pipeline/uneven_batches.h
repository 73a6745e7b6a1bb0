// How much longer a pipeline takes whose micro-batches, or stages, differ.
//
// On every stage micro-batch i takes loads[i] times as long as one of load 1. The schedule is that
// of interleave.h, operation after operation: one begins when its rank has done the one before and
// what it needs is there (Narayanan et al. 2021, sec. 2.2). Its length is the longest path through
// the operations, a maximum of sums of loads, and so convex in them: of expected loads it is no
// longer than it is expected to be. Forwards alone through one chunk a rank take the sum of all
// loads and stages - 1 times the largest, as in a flow shop whose machines are alike: a path that
// goes through every micro-batch and every stage stays at one micro-batch for all further stages.
// Backward passes are taken to be twice as long as forward ones where no seconds say otherwise.
// Pure functions; seconds.
#pragma once

#include <compare>
#include <span>
#include <vector>

#include "cost_models/spec/units.h"

namespace tessera {

/// All micro-batches once through a pipeline: forwards alone, or forwards and backwards.
struct StagedPass {
  int stages = 1, chunks = 1;  // chunks of layers a rank
  bool training = false;
  /// What each chunk takes by the mean of all, in the model's order (chunk c of rank s is the one
  /// at c * stages + s); empty: all take as long.
  std::vector<double> shares = {};
  auto operator<=>(const StagedPass&) const = default;
};

/// From the first operation to the last one's end, by the forward pass of load 1 on one rank.
double schedule_length(const StagedPass& pass, std::span<const double> loads);

/// That of as many equal micro-batches of load 1; of whole rounds of equal stages in closed form
/// (Narayanan et al. 2021, sec. 2.2.2).
double schedule_length(const StagedPass& pass, int micro_batches);

/// What one micro-batch takes on each chunk, in the model's order.
struct PassSeconds {
  std::vector<Seconds> forward, backward;  // backward: of a pass that trains
  Seconds hop;                             // after which another rank has what one has made
};

/// From the first operation to the last one's end, of equal micro-batches; `pass` without shares.
Seconds schedule_seconds(const StagedPass& pass, const PassSeconds& each, int micro_batches);

}  // namespace tessera
