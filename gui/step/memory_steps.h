// SPDX-License-Identifier: GPL-3.0-or-later
// What one rank holds over the simulated step, ready to be drawn and asked.
//
// The samples are the simulator's own (simulator/engine/memory_over_time.h): a rank's memory
// changes where a call begins or ends, and in a training call where a micro-batch's forward pass
// begins or its backward pass ends; in between it stays. So it is drawn as steps. Views of an
// index, which must outlive them; pure functions; bytes, and nanoseconds from the timeline's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// What of the rank's device plans may use, and all of it; 0 = not known.
struct MemoryLimits {
  std::int64_t usable = 0, device = 0;
  bool operator==(const MemoryLimits&) const = default;
};

struct MemorySteps {
  int rank = -1;
  std::int64_t end_ns = 0;                // of the step
  std::span<const MemorySample> samples;  // in time order; empty = no role lives on the rank
  std::span<const Span> phases;           // of the rank
  std::vector<std::size_t> classes;  // of memory_classes (cost_models/memory.h): not always zero
  std::size_t peak = 0;              // the first of the fullest samples
  Phase peak_phase = Phase::load;    // as the simulator's summary has it; `load` = outside all

  bool empty() const { return samples.empty(); }
  /// Where the sample after this one begins, or the step ends.
  std::int64_t end_of(std::size_t sample) const {
    return sample + 1 < samples.size() ? samples[sample + 1].time_ns : end_ns;
  }
  std::int64_t total(std::size_t sample) const { return samples[sample].use.total().value; }
};

MemorySteps memory_steps_of(const TimelineIndex& index, int rank);

/// The sample that holds at a time. Precondition: there is one.
std::size_t sample_at(const MemorySteps& steps, double ns);

/// What the rank does at a time; nullopt: it waits.
std::optional<Phase> phase_at(const MemorySteps& steps, double ns);

/// The fullest of the samples that hold while the phase runs.
std::optional<std::size_t> fullest_in(const MemorySteps& steps, Phase phase);

/// The pixels [from, to) into which one range of samples falls.
struct MemoryColumn {
  int from = 0, to = 0;
  std::size_t sample = 0;  // the fullest
  std::size_t least = 0;   // the emptiest; the same where nothing changes
  bool operator==(const MemoryColumn&) const = default;
};

/// From the left without gaps. Of the samples that share a pixel both ends are known: no zoom hides
/// a peak or a dip.
std::vector<MemoryColumn> columns_of(const MemorySteps& steps, const TimeAxis& axis, int width);

/// A class of memory by its place in memory_classes.
struct ClassBytes {
  std::size_t index = 0;
  std::int64_t bytes = 0;
  bool operator==(const ClassBytes&) const = default;
};

/// What makes the peak: by how much each class is above its least, the largest first; those below a
/// hundredth of the peak left out.
std::vector<ClassBytes> growth_at_peak(const MemorySteps& steps);
/// What the rank never holds less of: the least of each class together.
std::int64_t always_held(const MemorySteps& steps);

/// Every sample in a row: its time, the phase, the bytes of each class and of all.
std::string csv_of(const MemorySteps& steps);
/// The same with the peak and the limits.
std::string json_of(const MemorySteps& steps, const MemoryLimits& limits);

}  // namespace tessera::gui
