#include "simulator/timeline/rank_status.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

class RankStatusFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "tessera-status-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(run_); }

  /// Runs `fn(file)` in a process of its own, which then waits for `signal`.
  template <class Fn>
  int child_ended_by(int signal, Fn fn) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      RankStatusFile file(run_, 5);
      fn(file);
      if (::write(ready[1], "x", 1) != 1) ::_exit(9);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_TRUE(is_alive(pid));
    ::kill(pid, signal);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);
    EXPECT_FALSE(is_alive(pid)) << "a zombie counts as ended";
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_TRUE(WIFSIGNALED(status));
    return WTERMSIG(status);
  }

  std::filesystem::path run_;
};

TEST_F(RankStatusFiles, SurviveSigkillAndStayUnmarked) {
  EXPECT_EQ(child_ended_by(SIGKILL, [](RankStatusFile& file) { file.enter("reshard", 17); }),
            SIGKILL);
  const auto all = read_rank_statuses(run_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].rank, 5);
  EXPECT_EQ(all[0].phase, "reshard");
  EXPECT_EQ(all[0].step, 17);
  EXPECT_EQ(all[0].state, RankState::running);
  EXPECT_EQ(all[0].ended_ns, 0);
}

TEST_F(RankStatusFiles, SaySoWhenTheLauncherTerminatesTheRank) {
  EXPECT_EQ(child_ended_by(SIGTERM, [](RankStatusFile& file) { file.enter("gen", 2); }), SIGTERM);
  const auto status = read_rank_status(run_ / "ranks" / "5");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, RankState::terminated);
  EXPECT_GT(status->ended_ns, status->phase_since_ns);
}

TEST_F(RankStatusFiles, KeepTheFirstEnd) {
  EXPECT_EQ(child_ended_by(SIGTERM, [](RankStatusFile& file) { file.finish(130); }), SIGTERM);
  const auto status = read_rank_status(run_ / "ranks" / "5");
  EXPECT_EQ(status->state, RankState::finished);
  EXPECT_EQ(status->exit_code, 130);
}

TEST_F(RankStatusFiles, BeginInLoadAndCutLongNames) {
  RankStatusFile file(run_, 0);
  EXPECT_EQ(read_rank_status(run_ / "ranks" / "0")->phase, "load");
  file.enter(std::string(100, 'p'), 1);
  EXPECT_EQ(read_rank_status(run_ / "ranks" / "0")->phase, std::string(23, 'p'));
  EXPECT_EQ(read_rank_status(run_ / "ranks" / "0")->pid, ::getpid());
}

TEST_F(RankStatusFiles, AreReadByRankAndSkipWhatIsNoStatus) {
  const RankStatusFile ten(run_, 10), two(run_, 2);
  std::ofstream(run_ / "ranks" / "3") << "not a status";
  std::ofstream(run_ / "ranks" / "notes") << "x";
  const auto all = read_rank_statuses(run_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rank, 2);
  EXPECT_EQ(all[1].rank, 10);
  EXPECT_TRUE(read_rank_statuses(run_ / "nowhere").empty());
}

TEST_F(RankStatusFiles, OfWhomNothingIsKnownIsSaidWithTheReason) {
  EXPECT_EQ(read_rank_files(run_, 4).unread, std::vector<UnreadRank>()) << "nobody has started";
  const RankStatusFile zero(run_, 0), four(run_, 4);
  const auto in = [&](const char* name) { return run_ / "ranks" / name; };
  std::ofstream(in("1")) << "short";
  std::filesystem::create_directory(in("2"));
  std::filesystem::copy_file(in("0"), in("5"));
  std::filesystem::copy_file(in("0"), in("6"));
  std::fstream(in("6"), std::ios::in | std::ios::out) << "OTHER";
  std::ofstream(in("99999999999")) << "no rank's number";
  const RankFiles files = read_rank_files(run_, 8);
  ASSERT_EQ(files.ranks.size(), 2u);
  EXPECT_EQ(files.ranks[1].rank, 4);
  const std::string size = std::to_string(std::filesystem::file_size(in("0")));
  const std::vector<UnreadRank> expected{{1, false, "5 bytes instead of " + size},
                                         {2, false, "not a regular file"},
                                         {3, true, "no such file"},
                                         {5, false, "the file of rank 0"},
                                         {6, false, "not what a rank of this version writes"},
                                         {7, true, "no such file"}};
  EXPECT_EQ(files.unread, expected);
  EXPECT_EQ(read_rank_files(run_).unread.size(), 5u) << "of the last one no file tells";
}

TEST_F(RankStatusFiles, ThatCannotBeMadeAreAnInputOutputError) {
  std::ofstream(run_ / "file") << "x";
  try {
    const RankStatusFile file(run_ / "file", 0);
    FAIL() << "a folder below a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
  }
}

TEST_F(RankStatusFiles, TheStopFileAsksRanksToEnd) {
  EXPECT_FALSE(stop_requested(run_));
  request_stop(run_);
  request_stop(run_);
  EXPECT_TRUE(stop_requested(run_));
  EXPECT_EQ(requested_stop(run_), StopReason::stop);
  request_stop(run_, StopReason::requeue);
  EXPECT_EQ(requested_stop(run_), StopReason::requeue);
}

}  // namespace
}  // namespace tessera
