// The slices of a timeline that a trace shows: every span and sample, or where they are too many
// neighbouring ones together.
//
// Pure. A window of time is as long as the number asked for needs: spans of one phase, step and
// stream of a rank that start in the same window become one slice, so that those longer than it
// stay as they are; of the samples of a window the fullest stays. Phases are never merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/timeline/timeline.h"

namespace tessera {

/// One span, or several in a row.
struct TraceSlice {
  const Span* first = nullptr;  // of the timeline
  const Span* last = nullptr;   // the one that started last
  std::int64_t end_ns = 0;
  std::int64_t busy_ns = 0, bytes = 0;  // of all of them
  std::int64_t count = 1;

  /// The span's name; of several "F3 ... B17 (29)".
  std::string name() const;
};

struct TraceSlices {
  std::vector<TraceSlice> slices;  // in the order of the spans
  std::vector<const MemorySample*> memory;
  std::int64_t window_ns = 0;  // 0: nothing was merged
};

/// At most about `most` slices and samples (0 = any number), in so far as they can be merged.
/// Precondition: `timeline` is sorted.
TraceSlices slices_of(const Timeline& timeline, std::size_t most);

}  // namespace tessera
