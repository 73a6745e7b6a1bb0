// Records on a disk that refuses them: whole ones or none, and the run goes on.
#include "executor/records/line_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "executor/records/run_log.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LineFile, AFullDiskIsToldOnceAndSoIsItsEnd) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder.path / "log");
  LineFile file(folder.path / "log");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(file.append("one\n"));
  EXPECT_FALSE(file.append("two\n"));
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("log cannot be written: No space left on device"));
  EXPECT_EQ(told.find("cannot"), told.rfind("cannot"));
}

/// The kernel writes what fits: the file ends with a whole record all the same.
TEST(LineFile, HalfARecordIsCutOffAgain) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "log";
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    LineFile file(path);
    bool as_wanted = file.append("12345\n") && !file.append("67890\n") && !file.append("abcde\n");
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &none);
    testing::internal::CaptureStderr();
    as_wanted =
        as_wanted && file.append("fghij\n") &&
        testing::internal::GetCapturedStderr().find("2 records are missing") != std::string::npos;
    ::_exit(as_wanted ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(path), "12345\nfghij\n");
}

TEST(LineFile, LinesOfLaterStepsAndHalfLinesGo) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "samples";
  const std::string one = "{\"input\": \"a\", \"step\": 1}\n", two = "{\"step\":2, \"b\": 3}\n";
  const auto kept_of = [&](const std::string& text, std::int64_t step) {
    std::ofstream(path, std::ios::binary) << text;
    LineFile(path).forget_after(step);
    return text_of(path);
  };
  EXPECT_EQ(kept_of(one + two + two, 1), one);
  EXPECT_EQ(kept_of(one + two + "{\"step\": 1, \"ha", 2), one + two);
  EXPECT_EQ(kept_of(one + two, 0), "");
  EXPECT_EQ(kept_of(one + two, 7), one + two);
  EXPECT_EQ(kept_of("", 0), "");
  EXPECT_EQ(kept_of("no end", 5), "");
}

/// Numbers of a validation that was made after its step's line: they join it, however often.
TEST(RunLog, OneLineStandsForAStep) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "metrics.jsonl";
  const std::string one = "{\"step\": 1, \"data\": {\"a\": 1}}\n";
  {
    RunLog log(folder.path);
    log.add_to_step(0, {{"val", 0.5}});
    log.add_to_step(0, {{"val", 0.25}});
    EXPECT_EQ(text_of(path), "{\"step\": 0, \"data\": {\"val\": 0.25}}\n");
    log.add_step(1, {{"a", 1}});
    log.add_step(2, {{"loss", NAN}, {"z", 1.0 / 3}});
  }
  // As a run has left it that was killed: two lines of one step, and half a line.
  std::ofstream(path, std::ios::app) << "{\"step\": 2, \"data\": {\"val\": 7}}\n{\"step\": 2, \"da";
  RunLog log(folder.path);
  log.forget_after(2);
  log.add_to_step(2, {{"val", 0.75}});
  log.add_step(3, {{"a", 3}});
  EXPECT_EQ(text_of(path),
            "{\"step\": 0, \"data\": {\"val\": 0.25}}\n" + one +
                "{\"step\": 2, \"data\": {\"loss\": null, \"val\": 0.75, "
                "\"z\": 0.33333333333333331}}\n{\"step\": 3, \"data\": {\"a\": 3}}\n");
  EXPECT_FALSE(fs::exists(path.string() + ".new"));
}

/// A file that cannot be made anew has a line more, and loses none.
TEST(RunLog, WithoutRoomForAnotherFileAStepHasTwoLines) {
  const TemporaryFolder folder;
  RunLog log(folder.path);
  log.add_step(1, {{"a", 1}});
  fs::create_directory(folder.path / "metrics.jsonl.new");
  log.add_to_step(1, {{"val", 2}});
  EXPECT_EQ(text_of(folder.path / "metrics.jsonl"),
            "{\"step\": 1, \"data\": {\"a\": 1}}\n{\"step\": 1, \"data\": {\"val\": 2}}\n");
}

TEST(RunLog, AResumedRunForgetsTheStepsThatComeAgain) {
  const TemporaryFolder folder;
  RunLog log(folder.path);
  for (int step = 1; step <= 3; ++step) {
    log.add_step(step, {{"a", step}});
    log.add_sample("{\"step\": " + std::to_string(step) + "}");
  }
  log.forget_after(1);
  log.add_step(2, {{"a", 20}});
  EXPECT_EQ(text_of(folder.path / "metrics.jsonl"),
            "{\"step\": 1, \"data\": {\"a\": 1}}\n{\"step\": 2, \"data\": {\"a\": 20}}\n");
  EXPECT_EQ(text_of(folder.path / "samples.jsonl"), "{\"step\": 1}\n");
}

}  // namespace
}  // namespace tessera
