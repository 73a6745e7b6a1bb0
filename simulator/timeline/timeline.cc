#include "simulator/timeline/timeline.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <tuple>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/spec/enum_names.h"
#include "simulator/timeline/trace_slices.h"

namespace tessera {
namespace {

constexpr auto kStreams = enum_names<Stream>({{Stream::phases, "phases"},
                                              {Stream::compute, "compute"},
                                              {Stream::communication, "communication"},
                                              {Stream::copy, "copy"}});

/// Measured ranks follow the predicted ones, so that both show in one view.
constexpr int kSourceStride = 100000;

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Nanoseconds as the microseconds that the format wants, without loss.
std::string microseconds(std::int64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                static_cast<long long>(ns % 1000));
  return text;
}

class TraceWriter {
 public:
  /// Returns the process number behind the timeline's ranks.
  int add(const Timeline& timeline, int pid_offset, std::size_t most_events) {
    std::set<int> ranks;
    const TraceSlices shown = slices_of(timeline, most_events);
    for (const TraceSlice& slice : shown.slices) {
      const Span& span = *slice.first;
      ranks.insert(span.rank);
      event("{\"ph\":\"X\",\"pid\":" + std::to_string(pid_offset + span.rank) +
            ",\"tid\":" + std::to_string(static_cast<int>(span.stream)) + ",\"ts\":" +
            microseconds(span.start_ns) + ",\"dur\":" + microseconds(slice.end_ns - span.start_ns) +
            ",\"name\":" + json_string(slice.name()) + ",\"cat\":" +
            json_string(name_of(span.phase)) + ",\"args\":{\"step\":" + std::to_string(span.step) +
            ",\"bytes\":" + std::to_string(slice.bytes) + merged(slice) + "}}");
    }
    for (const MemorySample* sample : shown.memory) {
      ranks.insert(sample->rank);
      counter(*sample, pid_offset);
    }
    for (const int rank : ranks) name_rank(timeline.source, rank, pid_offset);
    return pid_offset + (ranks.empty() ? 0 : *ranks.rbegin() + 1);
  }

  void add(const std::vector<Counter>& counters, const std::string& source, int pid) {
    if (counters.empty()) return;
    name_process("links (" + source + ")", pid, 2 * pid);
    for (const Counter& counter : counters) {
      for (const std::size_t window : counter.changes()) {
        const double value = window < counter.values.size() ? counter.values[window] : 0;
        event("{\"ph\":\"C\",\"pid\":" + std::to_string(pid) +
              ",\"ts\":" + microseconds(counter.window_ns * static_cast<std::int64_t>(window)) +
              ",\"name\":" + json_string(counter.name) + ",\"args\":{" + json_string(counter.unit) +
              ":" + printed("%.6g", value) + "}}");
      }
    }
  }

  std::string finish() && { return std::move(text_) + "\n]}\n"; }

 private:
  static std::string merged(const TraceSlice& slice) {
    if (slice.count == 1) return {};
    return ",\"operations\":" + std::to_string(slice.count) +
           ",\"busy_us\":" + microseconds(slice.busy_ns);
  }

  void event(const std::string& json) {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    text_ += json;
  }

  void counter(const MemorySample& sample, int pid_offset) {
    std::string args;
    for (const auto& [name, bytes] : memory_classes(sample.use)) {
      args += (args.empty() ? "\"" : ",\"") + std::string(name) + "\":" + std::to_string(bytes);
    }
    event("{\"ph\":\"C\",\"pid\":" + std::to_string(pid_offset + sample.rank) + ",\"ts\":" +
          microseconds(sample.time_ns) + ",\"name\":\"memory_bytes\",\"args\":{" + args + "}}");
  }

  void name_process(const std::string& name, int number, int place) {
    const std::string pid = std::to_string(number);
    event("{\"ph\":\"M\",\"pid\":" + pid +
          ",\"name\":\"process_name\",\"args\":{\"name\":" + json_string(name) + "}}");
    event("{\"ph\":\"M\",\"pid\":" + pid +
          ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" + std::to_string(place) +
          "}}");
  }

  void name_rank(const std::string& source, int rank, int pid_offset) {
    const std::string pid = std::to_string(pid_offset + rank);
    name_process("rank " + std::to_string(rank) + " (" + source + ")", pid_offset + rank,
                 2 * rank + (pid_offset > 0 ? 1 : 0));
    for (const Stream stream :
         {Stream::phases, Stream::compute, Stream::communication, Stream::copy}) {
      event("{\"ph\":\"M\",\"pid\":" + pid +
            ",\"tid\":" + std::to_string(static_cast<int>(stream)) +
            ",\"name\":\"thread_name\",\"args\":{\"name\":" + json_string(name_of(stream)) + "}}");
    }
  }

  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  bool first_ = true;
};

}  // namespace

std::string_view name_of(Stream stream) { return kStreams[stream]; }

void sort(Timeline& timeline) {
  // What they are sorted by, with the place of each: spans are moved once.
  struct Key {
    std::int64_t start_ns = 0, end_ns = 0;
    int rank = 0;
    Stream stream = Stream::compute;
    std::size_t place = 0;
  };
  std::vector<Key> keys;
  keys.reserve(timeline.spans.size());
  for (const Span& span : timeline.spans) {
    keys.push_back({span.start_ns, span.end_ns, span.rank, span.stream, keys.size()});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return std::tie(a.rank, a.stream, a.start_ns, b.end_ns, a.place) <
           std::tie(b.rank, b.stream, b.start_ns, a.end_ns, b.place);
  });
  std::vector<Span> sorted;
  sorted.reserve(keys.size());
  for (const Key& key : keys) sorted.push_back(std::move(timeline.spans[key.place]));
  timeline.spans = std::move(sorted);
  std::stable_sort(timeline.memory.begin(), timeline.memory.end(),
                   [](const MemorySample& a, const MemorySample& b) {
                     return std::tie(a.rank, a.time_ns) < std::tie(b.rank, b.time_ns);
                   });
}

std::vector<std::size_t> Counter::changes() const {
  std::vector<std::size_t> windows;
  double before = 0;
  for (std::size_t window = 0; window <= values.size(); ++window) {
    const double now = window < values.size() ? values[window] : 0;
    if (std::exchange(before, now) != now) windows.push_back(window);
  }
  return windows;
}

std::string to_chrome_trace(const std::vector<const Timeline*>& timelines, std::size_t most_events,
                            const std::vector<Counter>& counters) {
  TraceWriter writer;
  int offset = 0;
  for (const Timeline* timeline : timelines) {
    const int behind = writer.add(*timeline, offset, most_events);
    if (offset == 0) writer.add(counters, timeline->source, behind);
    offset += kSourceStride;
  }
  return std::move(writer).finish();
}

}  // namespace tessera
