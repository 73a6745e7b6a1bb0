#include "executor/records/run_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/metrics.h"

namespace tessera {
namespace {

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-log-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(RunLog, EveryLineIsOnDiskAtOnceAndReadsBackBitForBit) {
  const Folder folder;
  RunLog log(folder.path);
  const std::map<std::string, double> first{{"timing_s/gen", 0.1}, {"actor/lr", 1.0 / 3}};
  for (std::int64_t step = 1; step <= 3; ++step) {
    log.add_step(step, first);
    Problems problems;
    const auto read = read_metrics(folder.path / "metrics.jsonl", problems);
    ASSERT_TRUE(read) << to_string(problems.at(0));
    ASSERT_EQ(read->size(), static_cast<std::size_t>(step)) << "before the log is closed";
    EXPECT_EQ(read->back().step, step);
    EXPECT_EQ(read->back().data, first);
  }
}

TEST(RunLog, NumbersThatAreNotFiniteAreNullAndNotInvalidJson) {
  const Folder folder;
  RunLog(folder.path).add_step(1, {{"a", NAN}, {"b", INFINITY}, {"c", 2.0}});
  Problems problems;
  const auto read = read_metrics(folder.path / "metrics.jsonl", problems);
  ASSERT_TRUE(read) << to_string(problems.at(0));
  EXPECT_EQ(read->at(0).data, (std::map<std::string, double>{{"c", 2.0}}));
}

TEST(RunLog, AResumedRunAppends) {
  const Folder folder;
  RunLog(folder.path).add_sample("{\"n\": 1}");
  RunLog(folder.path).add_sample("{\"n\": 2}");
  std::ifstream file(folder.path / "samples.jsonl");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "{\"n\": 1}\n{\"n\": 2}\n");
}

TEST(RunLog, WritesTensorBoardEventsBesideTheLines) {
  const Folder folder;
  RunLog(folder.path).add_step(1, {{"a", 1.0}});
  bool found = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path)) {
    found = found || entry.path().filename().string().find("tfevents") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST(RunLog, AFolderThatIsNotThereIsAnIoError) {
  try {
    RunLog log("/nonexistent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
  }
}

}  // namespace
}  // namespace tessera
