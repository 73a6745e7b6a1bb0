// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step/memory_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"

namespace tessera::gui {
namespace {

using Samples = std::span<const MemorySample>;

std::int64_t bytes_of(const MemorySample& sample, std::size_t index) {
  return memory_classes(sample.use)[index].second.value;
}

std::vector<std::size_t> classes_in(Samples samples) {
  std::vector<std::size_t> classes;
  for (std::size_t index = 0; index < kMemoryClasses; ++index) {
    const bool any = std::any_of(samples.begin(), samples.end(), [&](const MemorySample& sample) {
      return bytes_of(sample, index) != 0;
    });
    if (any) classes.push_back(index);
  }
  return classes;
}

std::int64_t least_of(const MemorySteps& steps, std::size_t index) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const MemorySample& sample : steps.samples) least = std::min(least, bytes_of(sample, index));
  return least;
}

std::string phase_name(const MemorySteps& steps, std::size_t sample) {
  const auto phase = phase_at(steps, static_cast<double>(steps.samples[sample].time_ns));
  return phase ? std::string(name_of(*phase)) : std::string();
}

std::size_t fuller(const MemorySteps& steps, std::size_t a, std::size_t b) {
  return steps.total(b) > steps.total(a) ? b : a;
}

}  // namespace

MemorySteps memory_steps_of(const TimelineIndex& index, int rank) {
  MemorySteps steps{.rank = rank, .end_ns = index.end_ns};
  const auto& all = index.simulation.timeline.memory;
  const auto [first, last] =
      std::ranges::equal_range(all, rank, std::ranges::less(), &MemorySample::rank);
  steps.samples = {first, last};
  for (const Lane& lane : lanes_of(index, rank)) {
    if (lane.stream != Stream::phases) continue;
    steps.phases =
        std::span(index.simulation.timeline.spans).subspan(lane.first, lane.last - lane.first);
  }
  steps.classes = classes_in(steps.samples);
  for (std::size_t i = 0; i < steps.samples.size(); ++i) steps.peak = fuller(steps, steps.peak, i);
  if (!steps.empty()) {
    steps.peak_phase = index.simulation.ranks[static_cast<std::size_t>(rank)].peak_phase;
  }
  return steps;
}

std::size_t sample_at(const MemorySteps& steps, double ns) {
  const auto after = std::partition_point(
      steps.samples.begin(), steps.samples.end(),
      [&](const MemorySample& sample) { return static_cast<double>(sample.time_ns) <= ns; });
  return after == steps.samples.begin()
             ? 0
             : static_cast<std::size_t>(after - steps.samples.begin()) - 1;
}

std::optional<Phase> phase_at(const MemorySteps& steps, double ns) {
  for (const Span& span : steps.phases) {
    if (static_cast<double>(span.start_ns) <= ns && ns < static_cast<double>(span.end_ns)) {
      return span.phase;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> fullest_in(const MemorySteps& steps, Phase phase) {
  std::optional<std::size_t> fullest;
  if (steps.empty()) return fullest;
  for (const Span& span : steps.phases) {
    if (span.phase != phase) continue;
    for (std::size_t i = sample_at(steps, static_cast<double>(span.start_ns));
         i < steps.samples.size() && steps.samples[i].time_ns < span.end_ns; ++i) {
      fullest = fullest ? fuller(steps, *fullest, i) : i;
    }
  }
  return fullest;
}

std::vector<MemoryColumn> columns_of(const MemorySteps& steps, const TimeAxis& axis, int width) {
  std::vector<MemoryColumn> columns;
  if (steps.empty()) return columns;
  std::size_t at = sample_at(steps, axis.time_at(0));
  const auto next_ns = [&] {
    return at + 1 < steps.samples.size() ? static_cast<double>(steps.samples[at + 1].time_ns)
                                         : std::numeric_limits<double>::infinity();
  };
  for (int x = 0; x < width; ++x) {
    while (next_ns() <= axis.time_at(x)) ++at;
    MemoryColumn column{x, x + 1, at, at};
    while (next_ns() < axis.time_at(x + 1)) {
      column.sample = fuller(steps, column.sample, ++at);
      if (steps.total(at) < steps.total(column.least)) column.least = at;
    }
    if (!columns.empty() && columns.back().sample == column.sample &&
        columns.back().least == column.least) {
      columns.back().to = x + 1;
    } else {
      columns.push_back(column);
    }
  }
  return columns;
}

std::vector<ClassBytes> growth_at_peak(const MemorySteps& steps) {
  std::vector<ClassBytes> growth;
  if (steps.empty()) return growth;
  for (const std::size_t index : steps.classes) {
    const std::int64_t more = bytes_of(steps.samples[steps.peak], index) - least_of(steps, index);
    if (more * 100 >= steps.total(steps.peak) && more > 0) growth.push_back({index, more});
  }
  std::stable_sort(growth.begin(), growth.end(),
                   [](const ClassBytes& a, const ClassBytes& b) { return a.bytes > b.bytes; });
  return growth;
}

std::int64_t always_held(const MemorySteps& steps) {
  std::int64_t held = 0;
  for (const std::size_t index : steps.classes) held += least_of(steps, index);
  return held;
}

std::string csv_of(const MemorySteps& steps) {
  if (steps.empty()) return {};
  CsvTable table;
  table.header = {"rank", "time_ns", "phase"};
  for (const auto& [name, bytes] : memory_classes({})) table.header.emplace_back(name);
  table.header.emplace_back("total");
  for (std::size_t i = 0; i < steps.samples.size(); ++i) {
    CsvRow row;
    row.cells = {std::to_string(steps.rank), std::to_string(steps.samples[i].time_ns),
                 phase_name(steps, i)};
    for (const auto& [name, bytes] : memory_classes(steps.samples[i].use)) {
      row.cells.push_back(std::to_string(bytes.value));
    }
    row.cells.push_back(std::to_string(steps.total(i)));
    table.rows.push_back(std::move(row));
  }
  return to_csv(table);
}

std::string json_of(const MemorySteps& steps, const MemoryLimits& limits) {
  if (steps.empty()) return {};
  Node root = map_node(), samples = list_node();
  add(root, "rank", node_of(steps.rank));
  add(root, "end_ns", node_of(steps.end_ns));
  add(root, "limit_bytes", node_of(limits.usable));
  add(root, "device_bytes", node_of(limits.device));
  add(root, "peak_bytes", node_of(steps.total(steps.peak)));
  add(root, "peak_ns", node_of(steps.samples[steps.peak].time_ns));
  add(root, "peak_phase",
      node_of(steps.peak_phase == Phase::load ? "none" : name_of(steps.peak_phase)));
  for (std::size_t i = 0; i < steps.samples.size(); ++i) {
    Node each = map_node(), classes = map_node();
    add(each, "time_ns", node_of(steps.samples[i].time_ns));
    if (const std::string phase = phase_name(steps, i); !phase.empty()) {
      add(each, "phase", node_of(phase));
    }
    for (const auto& [name, bytes] : memory_classes(steps.samples[i].use)) {
      if (bytes.value != 0) add(classes, name, node_of(bytes.value));
    }
    add(each, "bytes", std::move(classes));
    add(each, "total", node_of(steps.total(i)));
    samples.items.push_back(std::move(each));
  }
  add(root, "samples", std::move(samples));
  return json_text(root);
}

}  // namespace tessera::gui
