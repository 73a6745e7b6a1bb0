#include "simulator/timeline/trace_slices.h"

#include <algorithm>

namespace tessera {
namespace {

// Spans that may share a slice whatever the window is.
bool alike(const Span& a, const Span& b) {
  return a.rank == b.rank && a.stream == b.stream && a.phase == b.phase && a.step == b.step &&
         a.stream != Stream::phases;
}

// Calls with the first and the last span of every slice, in turn. A span that starts before its
// neighbours' end is in their slice, so that slices nest as spans do.
template <class Take>
void for_each_slice(const std::vector<Span>& spans, std::int64_t window, const Take& take) {
  for (std::size_t i = 0; i < spans.size();) {
    const Span& first = spans[i];
    std::int64_t end = first.end_ns;
    std::size_t next = i + 1;
    while (window > 0 && next < spans.size() && alike(first, spans[next]) &&
           (spans[next].start_ns / window == first.start_ns / window ||
            (next > i + 1 && spans[next].start_ns < end))) {
      end = std::max(end, spans[next++].end_ns);
    }
    take(i, next, end);
    i = next;
  }
}

template <class Take>
void for_each_sample(const std::vector<MemorySample>& samples, std::int64_t window,
                     const Take& take) {
  for (std::size_t i = 0; i < samples.size();) {
    std::size_t next = i + 1, fullest = i;
    while (window > 0 && next < samples.size() && samples[next].rank == samples[i].rank &&
           samples[next].time_ns / window == samples[i].time_ns / window) {
      if (samples[next].use.total() > samples[fullest].use.total()) fullest = next;
      ++next;
    }
    take(fullest);
    i = next;
  }
}

std::size_t events_of(const Timeline& timeline, std::int64_t window) {
  std::size_t events = 0;
  for_each_slice(timeline.spans, window, [&](std::size_t, std::size_t, std::int64_t) { ++events; });
  for_each_sample(timeline.memory, window, [&](std::size_t) { ++events; });
  return events;
}

// The shortest window, in powers of two, with which no more than `most` are left.
std::int64_t window_for(const Timeline& timeline, std::size_t most) {
  if (most == 0 || timeline.spans.size() + timeline.memory.size() <= most) return 0;
  int low = 0, high = 50;  // exponents; 2^50 ns are 13 days
  while (low < high) {
    const int middle = (low + high) / 2;
    if (events_of(timeline, std::int64_t{1} << middle) <= most) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::int64_t{1} << low;
}

}  // namespace

std::string TraceSlice::name() const {
  if (count == 1) return first->name;
  const std::string number = " (" + std::to_string(count) + ")";
  return first->name == last->name ? first->name + number
                                   : first->name + " ... " + last->name + number;
}

TraceSlices slices_of(const Timeline& timeline, std::size_t most) {
  TraceSlices all;
  all.window_ns = window_for(timeline, most);
  for_each_slice(timeline.spans, all.window_ns,
                 [&](std::size_t begin, std::size_t end, std::int64_t end_ns) {
                   TraceSlice slice{.first = &timeline.spans[begin],
                                    .last = &timeline.spans[end - 1],
                                    .end_ns = end_ns,
                                    .count = static_cast<std::int64_t>(end - begin)};
                   for (std::size_t i = begin; i < end; ++i) {
                     slice.busy_ns += timeline.spans[i].end_ns - timeline.spans[i].start_ns;
                     slice.bytes += timeline.spans[i].bytes;
                   }
                   all.slices.push_back(slice);
                 });
  for_each_sample(timeline.memory, all.window_ns,
                  [&](std::size_t sample) { all.memory.push_back(&timeline.memory[sample]); });
  return all;
}

}  // namespace tessera
