// How much longer a pipeline takes whose micro-batches differ.
//
// On every stage micro-batch i takes loads[i] times as long as one of load 1. The schedule is that
// of interleave.h, operation after operation: one begins when its rank has done the one before and
// what it needs is there (Narayanan et al. 2021, sec. 2.2). Its length is the longest path through
// the operations, a maximum of sums of loads, and so convex in them: of expected loads it is no
// longer than it is expected to be. Forwards alone through one chunk a rank take the sum of all
// loads and stages - 1 times the largest, as in a flow shop whose machines are alike: a path that
// goes through every micro-batch and every stage stays at one micro-batch for all further stages.
// Stages are taken as equal and backward passes as twice as long as forward ones. Pure functions.
#pragma once

#include <compare>
#include <span>

namespace tessera {

/// All micro-batches once through a pipeline: forwards alone, or forwards and backwards.
struct StagedPass {
  int stages = 1, chunks = 1;  // chunks of layers a rank
  bool training = false;
  auto operator<=>(const StagedPass&) const = default;
};

/// From the first operation to the last one's end, by the forward pass of load 1 on one rank.
double schedule_length(const StagedPass& pass, std::span<const double> loads);

/// That of as many equal micro-batches of load 1; of whole rounds of the stages in closed form
/// (Narayanan et al. 2021, sec. 2.2.2).
double schedule_length(const StagedPass& pass, int micro_batches);

}  // namespace tessera
