#include "executor/records/run_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tessera {
namespace {

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-trace-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path file() const { return path / "trace.json"; }
};

/// Two ranks that generate for 1 us and train for 2 us a step.
Timeline steps(int first, int last) {
  Timeline timeline{.source = "measured"};
  for (int step = first; step <= last; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::int64_t begin = 3000LL * (step - first);
      timeline.spans.push_back({begin, begin + 1000, rank, Stream::phases, Phase::gen, step, -1,
                                std::string(name_of(Phase::gen))});
      timeline.spans.push_back({begin + 1000, begin + 3000, rank, Stream::phases,
                                Phase::update_actor, step, -1,
                                std::string(name_of(Phase::update_actor))});
    }
  }
  sort(timeline);
  return timeline;
}

nlohmann::json events_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(std::ifstream(file)).at("traceEvents");
}

TEST(RunTrace, ARunThatGoesOnTwiceHasTheTraceOfOneThatWasNeverStopped) {
  const Folder stopped, whole;
  write_run_trace(whole.file(), steps(1, 9), 0);
  write_run_trace(stopped.file(), steps(1, 4), 0);
  write_run_trace(stopped.file(), steps(5, 7), 4);
  write_run_trace(stopped.file(), steps(8, 9), 7);
  EXPECT_EQ(events_of(stopped.file()), events_of(whole.file()));
}

TEST(RunTrace, StepsBehindTheCheckpointAreThoseThatWereMadeAnew) {
  const Folder stopped, whole;
  write_run_trace(whole.file(), steps(1, 5), 0);
  write_run_trace(stopped.file(), steps(1, 4), 0);
  write_run_trace(stopped.file(), steps(3, 5), 2);
  EXPECT_EQ(events_of(stopped.file()), events_of(whole.file()));
  write_run_trace(stopped.file(), steps(1, 5), 0);
  EXPECT_EQ(events_of(stopped.file()), events_of(whole.file())) << "it begins again";
}

TEST(RunTrace, TheNewestStepsAreKept) {
  const Folder folder;
  write_run_trace(folder.file(), steps(1, 9), 0);
  const auto kept = [&](std::int64_t last_step, std::size_t most) {
    std::multiset<int> found;
    for (const Span& span : spans_before(folder.file(), last_step, most).spans) {
      found.insert(span.step);
    }
    return found;
  };
  EXPECT_EQ(kept(8, 11), (std::multiset<int>{7, 7, 7, 7, 8, 8, 8, 8}));
  EXPECT_EQ(kept(8, 3), std::multiset<int>{});
  EXPECT_EQ(kept(2, 100), (std::multiset<int>{1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(RunTrace, WhatIsNoTraceOfARunIsReplaced) {
  const Folder folder, whole;
  write_run_trace(whole.file(), steps(5, 6), 0);
  for (const char* text : {"", "[", "{\"traceEvents\":[\n{\"ph\":\"X\"},\n{\"ph\":1},\n7]}",
                           "{\"ph\":\"X\",\"pid\":0,\"ts\":\"a\",\"dur\":1,\"cat\":\"gen\","
                           "\"args\":{\"step\":1},\"name\":\"gen\"}",
                           "{\"ph\":\"X\",\"pid\":0,\"ts\":0,\"dur\":1,\"cat\":\"dance\","
                           "\"args\":{\"step\":1},\"name\":\"dance\"}"}) {
    std::ofstream(folder.file()) << text;
    write_run_trace(folder.file(), steps(5, 6), 4);
    EXPECT_EQ(events_of(folder.file()), events_of(whole.file())) << text;
  }
}

}  // namespace
}  // namespace tessera
