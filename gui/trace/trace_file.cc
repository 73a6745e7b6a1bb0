// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/trace_file.h"

#include <QFile>
#include <QString>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"
#include "gui/trace/trace_events.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

constexpr double kMostNs = 4e18;  // of the whole trace

/// Places of a list's items in another order: [place] = the item's new place.
using Places = std::vector<std::uint32_t>;

template <class Before>
Places places_by(std::size_t count, const Before& before) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  Places places(count);
  for (std::size_t i = 0; i < count; ++i) places[order[i]] = static_cast<std::uint32_t>(i);
  return places;
}

/// Processes by their order, and threads by their process and their own.
struct Lines {
  Places processes, tracks;
};

Lines lines_of(const TraceEvents& events) {
  Lines lines;
  lines.processes = places_by(events.processes.size(), [&](std::uint32_t a, std::uint32_t b) {
    return events.processes[a].order < events.processes[b].order;
  });
  lines.tracks = places_by(events.tracks.size(), [&](std::uint32_t a, std::uint32_t b) {
    const TraceLine &one = events.tracks[a], &other = events.tracks[b];
    return std::pair(lines.processes[one.above], one.order) <
           std::pair(lines.processes[other.above], other.order);
  });
  return lines;
}

std::optional<Stream> stream_named(std::string_view name) {
  for (const Stream stream :
       {Stream::phases, Stream::compute, Stream::communication, Stream::copy}) {
    if (name_of(stream) == name) return stream;
  }
  return std::nullopt;
}

std::string shown_name(const TraceLine& line, const char* number) {
  if (!line.name.empty()) return line.name;
  const bool is_number = line.id.find_first_not_of("-0123456789") == std::string::npos;
  return is_number ? number + line.id : line.id;
}

TraceNames names_of(const TraceEvents& events, const Lines& lines) {
  TraceNames names;
  names.processes.resize(events.processes.size());
  for (std::size_t i = 0; i < events.processes.size(); ++i) {
    names.processes[lines.processes[i]] = shown_name(events.processes[i], "pid ");
  }
  names.tracks.resize(events.tracks.size());
  for (std::size_t i = 0; i < events.tracks.size(); ++i) {
    names.tracks[lines.tracks[i]] = shown_name(events.tracks[i], "tid ");
  }
  for (const std::string& text : events.texts) {
    names.phase_of_category.push_back(phase_from(text));
  }
  names.left_out = events.left_out;
  names.phases = std::ranges::all_of(events.spans, [&](const TraceEvent& one) {
    return names.phase_of_category[one.category].has_value();
  });
  return names;
}

/// A span of one track, and how many of its others are around it.
struct Timed {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t event = 0, depth = 0;
};

// Those around others first.
void sort_by_time(std::vector<Timed>& spans) {
  const auto before = [](const Timed& a, const Timed& b) {
    return std::tie(a.start_ns, b.end_ns, a.event) < std::tie(b.start_ns, a.end_ns, b.event);
  };
  if (!std::is_sorted(spans.begin(), spans.end(), before)) {
    std::sort(spans.begin(), spans.end(), before);
  }
}

// Of spans by time; returns how many lines they take.
std::uint32_t find_depths(std::vector<Timed>& spans) {
  std::uint32_t lines = 0;
  std::vector<std::int64_t> around;  // ends of the spans that are open
  for (Timed& span : spans) {
    while (!around.empty() && around.back() <= span.start_ns) around.pop_back();
    span.depth = static_cast<std::uint32_t>(around.size());
    around.push_back(span.end_ns);
    lines = std::max(lines, span.depth + 1);
  }
  return lines;
}

/// The events of each track one behind the other: [place of the track] = where its own begin.
struct ByTrack {
  std::vector<std::size_t> first;
  std::vector<std::uint32_t> events;
};

ByTrack by_track(const TraceEvents& events, const Lines& lines) {
  ByTrack by;
  by.first.assign(events.tracks.size() + 1, 0);
  for (const TraceEvent& one : events.spans) ++by.first[lines.tracks[one.track] + 1];
  std::partial_sum(by.first.begin(), by.first.end(), by.first.begin());
  std::vector<std::size_t> next = by.first;
  by.events.resize(events.spans.size());
  for (std::size_t i = 0; i < events.spans.size(); ++i) {
    by.events[next[lines.tracks[events.spans[i].track]]++] = static_cast<std::uint32_t>(i);
  }
  return by;
}

/// Fills an index with the spans of a trace, track by track.
class TraceColumns {
 public:
  TraceColumns(const TraceEvents& events, const Lines& lines, double begin_us, TimelineIndex& index)
      : events_(events),
        begin_us_(begin_us),
        by_track_(by_track(events, lines)),
        lines_(lines),
        index_(index) {
    const std::size_t spans = events.spans.size();
    index.starts.resize(spans);
    index.name_of.resize(spans);
    index.trace->category_of.resize(spans);
    index.busy_before.assign(spans + 1, 0);
  }

  void fill() {
    std::vector<std::uint32_t> track_at(events_.tracks.size());
    for (std::uint32_t i = 0; i < track_at.size(); ++i) track_at[lines_.tracks[i]] = i;
    for (std::size_t place = 0; place < track_at.size(); ++place) {
      add_track(place, events_.tracks[track_at[place]]);
    }
    std::partial_sum(index_.busy_before.begin(), index_.busy_before.end(),
                     index_.busy_before.begin());
  }

 private:
  std::int64_t ns(double us) const { return std::llround((us - begin_us_) * 1e3); }

  void add_track(std::size_t place, const TraceLine& track) {
    const std::size_t first = by_track_.first[place], last = by_track_.first[place + 1];
    spans_.clear();
    for (std::size_t i = first; i < last; ++i) {
      const TraceEvent& event = events_.spans[by_track_.events[i]];
      spans_.push_back({ns(event.start_us), ns(event.end_us), by_track_.events[i]});
    }
    sort_by_time(spans_);
    const std::uint32_t depths = find_depths(spans_);
    std::vector<std::size_t> next(depths + 1, first);  // by depth
    for (const Timed& span : spans_) ++next[span.depth + 1];
    for (std::uint32_t depth = 0; depth < depths; ++depth) {
      if (depth > 0) next[depth + 1] += next[depth] - first;
      index_.lanes.push_back({static_cast<int>(lines_.processes[track.above]),
                              stream_named(track.name).value_or(Stream::compute), next[depth],
                              next[depth + 1], static_cast<int>(place), static_cast<int>(depth)});
    }
    for (const Timed& span : spans_) put(next[span.depth]++, span);
  }

  void put(std::size_t at, const Timed& span) {
    const TraceEvent& event = events_.spans[span.event];
    index_.starts[at] = span.start_ns;
    index_.busy_before[at + 1] = span.end_ns - span.start_ns;
    index_.name_of[at] = event.name;
    index_.trace->category_of[at] = event.category;
    index_.end_ns = std::max(index_.end_ns, span.end_ns);
  }

  const TraceEvents& events_;
  double begin_us_;
  ByTrack by_track_;
  const Lines& lines_;
  TimelineIndex& index_;
  std::vector<Timed> spans_;  // of one track
};

TimelineIndex index_of(TraceEvents events, double begin_us) {
  const Lines lines = lines_of(events);
  TimelineIndex index;
  index.simulation.timeline.source = "measured";
  index.trace = names_of(events, lines);
  TraceColumns(events, lines, begin_us, index).fill();
  index.names = std::move(events.texts);
  for (const Lane& lane : index.lanes) {
    const bool known = !index.groups.empty() && index.groups.back().ranks.front() == lane.rank;
    if (!known) index.groups.push_back({{lane.rank}});
  }
  return index;
}

}  // namespace

std::optional<TimelineIndex> trace_in(std::string_view text, const std::string& file,
                                      Problems& problems, const TraceLimits& limits,
                                      const PartRead& part_read) {
  TraceEvents events;
  if (!read_events(text, file, limits, part_read, events, problems)) return std::nullopt;
  double begin = std::numeric_limits<double>::infinity(), end = -begin;
  for (const TraceEvent& one : events.spans) {
    begin = std::min(begin, one.start_us);
    end = std::max(end, one.end_us);
  }
  if ((end - begin) * 1e3 > kMostNs) {
    problems.push_back({file, "", QT_TRANSLATE_NOOP("Words", "a trace of more than 100 years"),
                        QT_TRANSLATE_NOOP("Words", "ts and dur as numbers of microseconds"), ""});
    return std::nullopt;
  }
  TimelineIndex index = index_of(std::move(events), begin);
  index.trace->file = file;
  return index;
}

namespace {

// Pages of a mapped file that were read need not stay: whoever reads them again gets the same.
void let_go(std::string_view part) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

std::optional<TimelineIndex> read_trace(const fs::path& path, Problems& problems,
                                        const PartRead& part_read, const TraceLimits& limits) {
  const std::string file = path.string();
  std::error_code error;
  const bool regular = fs::is_regular_file(path, error);
  QFile in(QString::fromStdString(file));
  if (!regular || !in.open(QIODevice::ReadOnly)) {
    problems.push_back({file, "", QT_TRANSLATE_NOOP("Words", "no file that can be read"),
                        QT_TRANSLATE_NOOP("Words", "a Chrome trace"), ""});
    return std::nullopt;
  }
  if (static_cast<std::size_t>(in.size()) > limits.bytes) {
    problems.push_back({file, "", QT_TRANSLATE_NOOP("Words", "more than 2 GiB"),
                        QT_TRANSLATE_NOOP("Words", "a part of the trace"), ""});
    return std::nullopt;
  }
  const uchar* const bytes = in.size() > 0 ? in.map(0, in.size()) : nullptr;
  const std::string_view text(reinterpret_cast<const char*>(bytes),
                              bytes != nullptr ? static_cast<std::size_t>(in.size()) : 0);
  const PartRead read_and_let_go = [&](std::string_view part) {
    let_go(part);
    return part_read(part);
  };
  return trace_in(text, file, problems, limits, read_and_let_go);
}

void give_trace_csv(const TimelineIndex& index, const TakePart& take) {
  constexpr std::size_t kBytesOfPart = 1 << 18;
  const auto all = static_cast<double>(index.name_of.size());
  std::size_t given = 0;
  std::string part;
  append_row(part, {"process", "track", "depth", "name", "category", "start_ns", "end_ns"});
  for (const Lane& lane : index.lanes) {
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      append_row(part, {index.trace->processes[static_cast<std::size_t>(lane.rank)],
                        index.trace->tracks[static_cast<std::size_t>(lane.track)],
                        std::to_string(lane.depth), index.names[index.name_of[i]],
                        index.names[index.trace->category_of[i]], std::to_string(index.start_ns(i)),
                        std::to_string(index.end_ns_of(i))});
      ++given;
      if (part.size() < kBytesOfPart) continue;
      take(part, static_cast<double>(given) / all);
      part.clear();
    }
  }
  take(part, 1);
}

}  // namespace tessera::gui
