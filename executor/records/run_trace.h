// RUN/trace.json: the phases of every rank, those before a stop ahead of those after it.
//
// Where a run goes on from a checkpoint its clock begins anew: what was measured until that step
// stays, and what follows stands behind it, without the time in between. Rank 0's; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "simulator/timeline/timeline.h"

namespace tessera {

/// Most spans of earlier parts that a file keeps: the newest steps, each with all that it has.
inline constexpr std::size_t kMostKeptSpans = 400'000;

/// Spans that the file has of steps up to `last_step`, sorted; empty where there is no such file.
/// Lines that are no span as to_chrome_trace writes it are passed over.
Timeline spans_before(const std::filesystem::path& file, std::int64_t last_step,
                      std::size_t most = kMostKeptSpans);

/// Writes the file anew. `measured`: since the run began, or went on after `first_step` steps.
/// Throws Error (io).
void write_run_trace(const std::filesystem::path& file, Timeline measured, std::int64_t first_step);

}  // namespace tessera
