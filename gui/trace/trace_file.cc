// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/trace_file.h"

#include <QFile>
#include <QString>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
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

struct Timed {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t event = 0, place = 0;  // place: of its track, in order
  std::uint32_t depth = 0;             // spans around it
};

// By track and time, those around others first.
std::vector<Timed> timed_of(const TraceEvents& events, const Lines& lines, double begin_us) {
  std::vector<Timed> timed;
  timed.reserve(events.spans.size());
  for (std::size_t i = 0; i < events.spans.size(); ++i) {
    const TraceEvent& one = events.spans[i];
    timed.push_back({std::llround((one.start_us - begin_us) * 1e3),
                     std::llround((one.end_us - begin_us) * 1e3), static_cast<std::uint32_t>(i),
                     lines.tracks[one.track]});
  }
  std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
    return std::tie(a.place, a.start_ns, b.end_ns, a.event) <
           std::tie(b.place, b.start_ns, a.end_ns, b.event);
  });
  std::vector<std::int64_t> around;  // ends of the spans that are open
  for (std::size_t i = 0; i < timed.size(); ++i) {
    if (i > 0 && timed[i - 1].place != timed[i].place) around.clear();
    while (!around.empty() && around.back() <= timed[i].start_ns) around.pop_back();
    timed[i].depth = static_cast<std::uint32_t>(around.size());
    around.push_back(timed[i].end_ns);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
    return std::pair(a.place, a.depth) < std::pair(b.place, b.depth);
  });
  return timed;
}

std::optional<Stream> stream_named(std::string_view name) {
  for (const Stream stream :
       {Stream::phases, Stream::compute, Stream::communication, Stream::copy}) {
    if (name_of(stream) == name) return stream;
  }
  return std::nullopt;
}

// Some phase, so that equal names have one colour, and the first ones colours of their own.
Phase colour_of(std::uint32_t name) { return kEveryPhase[name % kEveryPhase.size()]; }

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
  names.categories = events.texts;
  names.left_out = events.left_out;
  names.phases = std::ranges::all_of(events.spans, [&](const TraceEvent& one) {
    return phase_from(events.texts[one.category]).has_value();
  });
  return names;
}

TimelineIndex index_of(const TraceEvents& events, double begin_us) {
  const Lines lines = lines_of(events);
  const std::vector<Timed> timed = timed_of(events, lines, begin_us);
  TraceNames names = names_of(events, lines);
  Simulation measured;
  measured.timeline.source = "measured";
  std::vector<Span>& spans = measured.timeline.spans;
  spans.reserve(timed.size());
  std::vector<Lane> lanes;
  for (const Timed& at : timed) {
    const TraceEvent& event = events.spans[at.event];
    const std::string& name = events.texts[event.name];
    const auto phase = phase_from(events.texts[event.category]);
    Span& span = spans.emplace_back();
    span.start_ns = at.start_ns;
    span.end_ns = at.end_ns;
    span.rank = static_cast<int>(lines.processes[events.tracks[event.track].above]);
    span.stream = stream_named(events.tracks[event.track].name).value_or(Stream::compute);
    span.phase = phase.value_or(colour_of(event.name));
    span.name = name;
    names.category_of.push_back(event.category);
    const Lane lane{span.rank,
                    span.stream,
                    spans.size() - 1,
                    spans.size() - 1,
                    static_cast<int>(at.place),
                    static_cast<int>(at.depth)};
    if (lanes.empty() || lanes.back().track != lane.track || lanes.back().depth != lane.depth) {
      lanes.push_back(lane);
    }
    lanes.back().last = spans.size();
  }
  return gui::index_of(std::move(measured), std::move(lanes), std::move(names));
}

}  // namespace

std::optional<TimelineIndex> trace_in(std::string_view text, const std::string& file,
                                      Problems& problems, const TraceLimits& limits) {
  TraceEvents events;
  if (!read_events(text, file, limits.spans, limits.tracks, events, problems)) return std::nullopt;
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
  TimelineIndex index = index_of(events, begin);
  index.trace->file = file;
  return index;
}

std::optional<TimelineIndex> read_trace(const fs::path& path, Problems& problems,
                                        const TraceLimits& limits) {
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
  return trace_in(text, file, problems, limits);
}

std::string trace_csv_of(const TimelineIndex& index) {
  std::string out;
  append_row(out, {"process", "track", "depth", "name", "category", "start_ns", "end_ns"});
  for (const Lane& lane : index.lanes) {
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Span& span = index.span(i);
      append_row(out, {index.trace->processes[static_cast<std::size_t>(lane.rank)],
                       index.trace->tracks[static_cast<std::size_t>(lane.track)],
                       std::to_string(lane.depth), span.name,
                       index.trace->categories[index.trace->category_of[i]],
                       std::to_string(span.start_ns), std::to_string(span.end_ns)});
    }
  }
  return out;
}

}  // namespace tessera::gui
