#include "simulator/timeline/trace_slices.h"

#include <gtest/gtest.h>

#include <random>

namespace tessera {
namespace {

// Two ranks with short and long operations in turn, phases above them, and memory that changes with
// each.
Timeline busy_timeline(int operations) {
  Timeline timeline;
  std::mt19937 random(3);
  std::uniform_int_distribution<std::int64_t> draw(50, 5000);
  for (int rank = 0; rank < 2; ++rank) {
    std::int64_t now = 0;
    for (const Phase phase : {Phase::gen, Phase::update_actor}) {
      const std::int64_t begin = now;
      for (int i = 0; i < operations; ++i) {
        const std::int64_t length = i % 100 == 99 ? 1'000'000 : draw(random);
        now += draw(random);
        timeline.spans.push_back({now, now + length, rank, Stream::compute, phase, 0, -1,
                                  "F" + std::to_string(i), length});
        now += length;
        MemoryUse use;
        use.activations = Bytes{draw(random)};
        timeline.memory.push_back({now, rank, use});
      }
      timeline.spans.push_back({begin, now, rank, Stream::phases, phase, 0, -1, "phase", 0});
    }
  }
  sort(timeline);
  return timeline;
}

TEST(TraceSlices, KeepEverySpanWhereTheyAreFewEnough) {
  const Timeline timeline = busy_timeline(100);
  for (const std::size_t most : {std::size_t{0}, timeline.spans.size() + timeline.memory.size()}) {
    const TraceSlices all = slices_of(timeline, most);
    EXPECT_EQ(all.window_ns, 0);
    ASSERT_EQ(all.slices.size(), timeline.spans.size());
    EXPECT_EQ(all.memory.size(), timeline.memory.size());
    EXPECT_EQ(all.slices[7].name(), timeline.spans[7].name);
  }
  EXPECT_EQ(to_chrome_trace({&timeline}), to_chrome_trace({&timeline}, 1'000'000));
}

TEST(TraceSlices, LoseNoTimeAndNoBytesAndNest) {
  const Timeline timeline = busy_timeline(4000);
  for (const std::size_t most : {12000U, 3000U, 400U}) {
    const TraceSlices few = slices_of(timeline, most);
    EXPECT_LE(few.slices.size() + few.memory.size(), most);
    std::int64_t busy = 0, bytes = 0, count = 0, phases = 0;
    const TraceSlice* before = nullptr;
    for (const TraceSlice& slice : few.slices) {
      busy += slice.busy_ns;
      bytes += slice.bytes;
      count += slice.count;
      phases += slice.first->stream == Stream::phases ? slice.count : 0;
      EXPECT_EQ(slice.first->phase, slice.last->phase);
      const bool same = before != nullptr && before->first->rank == slice.first->rank &&
                        before->first->stream == slice.first->stream;
      if (same) {
        EXPECT_LE(before->end_ns, slice.first->start_ns);
      }
      before = &slice;
    }
    std::int64_t all_busy = 0, all_bytes = 0;
    for (const Span& span : timeline.spans) {
      all_busy += span.end_ns - span.start_ns;
      all_bytes += span.bytes;
    }
    EXPECT_EQ(busy, all_busy);
    EXPECT_EQ(bytes, all_bytes);
    EXPECT_EQ(count, static_cast<std::int64_t>(timeline.spans.size()));
    EXPECT_EQ(phases, 4);  // each as it was
  }
}

TEST(TraceSlices, KeepTheFullestMomentOfEveryRank) {
  const Timeline timeline = busy_timeline(2000);
  const TraceSlices few = slices_of(timeline, 300);
  for (int rank = 0; rank < 2; ++rank) {
    Bytes peak, kept;
    for (const MemorySample& sample : timeline.memory) {
      if (sample.rank == rank) peak = std::max(peak, sample.use.total());
    }
    for (const MemorySample* sample : few.memory) {
      if (sample->rank == rank) kept = std::max(kept, sample->use.total());
    }
    EXPECT_EQ(kept, peak);
  }
}

// Short operations are told by their first and last name and their number; long ones stay alone.
TEST(TraceSlices, NameWhatTheyHold) {
  const Timeline timeline = busy_timeline(1000);
  const TraceSlices few = slices_of(timeline, 1500);
  bool merged = false, alone = false;
  for (const TraceSlice& slice : few.slices) {
    if (slice.first->stream == Stream::phases) continue;
    merged = merged ||
             (slice.count > 1 && slice.name() == slice.first->name + " ... " + slice.last->name +
                                                     " (" + std::to_string(slice.count) + ")");
    alone = alone || slice.count == 1;
  }
  EXPECT_TRUE(merged);
  EXPECT_TRUE(alone);
  EXPECT_NE(to_chrome_trace({&timeline}, 1500).find("\"operations\":"), std::string::npos);
}

}  // namespace
}  // namespace tessera
