// How far an engine's memory is from what the planner counts for it: what was measured, as an error
// bar.
//
// A plain value of the engine, made from runs whose memory was predicted and measured. Ratios are
// of bytes that were held to bytes that were counted, at a rank's peak, without what lies outside
// the allocator and without what the allocator keeps unused. The fractions of one.
#pragma once

#include <string_view>

#include "cost_models/spec/units.h"

namespace tessera {

struct MemoryAccuracy {
  /// Mean of held / counted, less 1: what the account leaves out (above 0) or counts twice.
  double bias = 0;
  /// One standard deviation of that ratio between configurations.
  double deviation = 0;
  /// Mean of what a GPU holds outside the allocator beyond the calibration's reserve_bytes (NCCL's
  /// buffers, mapped memory of peers, a second process), and its standard deviation. A rank alone
  /// and ranks that are processes on cores have none of it.
  Bytes outside, outside_deviation;
  /// Configurations behind these figures; 0 = nobody has measured this engine.
  int measured = 0;
  std::string_view source;  // of static lifetime: which runs, where their figures are
  bool operator==(const MemoryAccuracy&) const = default;
};

/// Of an engine that nobody has measured: twice the deviation of those that were, and nothing known
/// of a bias.
inline constexpr MemoryAccuracy kUnmeasuredMemory{
    .deviation = 0.05,
    .outside_deviation = Bytes{3LL << 29},
    .source = "not measured: twice the deviation of the engines that were"};

}  // namespace tessera
