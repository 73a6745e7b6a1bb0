#include "executor/launch/watched_ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/launch/relaunch.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using SystemClock = std::chrono::system_clock;

constexpr auto kPoll = 20ms;
constexpr int kNotStarted = 127;
constexpr std::array<int, 4> kPassedOn{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

std::atomic<pid_t> launcher = 0;
std::atomic<int> asked = 0;  // to end, by this signal

void pass_on(int signal) {
  asked = signal;
  if (launcher > 0) ::kill(launcher, signal);
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : kPassedOn) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup
  }
}

/// Between fork and exec only calls that are safe while other threads hold locks.
[[noreturn]] void become(char* const* argv, pid_t parent, const sigset_t& signals) {
  ::setpgid(0, 0);  // what a terminal sends comes once, from the parent
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);  // it ended before the line above
  const int null = ::open("/dev/null", O_RDONLY);   // a background group must not read the terminal
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  handle(SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvp(argv[0], argv);
  ::_exit(kNotStarted);
}

/// A signal that comes meanwhile is passed on once the launcher is known. False, and nothing is
/// started, where one came since the ranks before had ended.
bool start(std::vector<std::string> line) {
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  for (const int signal : kPassedOn) ::sigaddset(&blocked, signal);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  if (asked != 0) return false;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(argv.data(), parent, before);
  if (child > 0) ::setpgid(child, child);  // both sides: whoever comes first
  launcher = child;
  handle(pass_on);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) throw Error(ExitCode::missing, line[0] + ": " + std::strerror(errno));
  return true;
}

/// Files of ranks that ran before are not of these.
std::vector<RankStatus> ranks_since(const std::filesystem::path& folder, std::int64_t start_ns) {
  std::vector<RankStatus> ranks = read_rank_statuses(folder);
  std::erase_if(ranks, [&](const RankStatus& rank) { return rank.phase_since_ns < start_ns; });
  return ranks;
}

void note_dead(const std::vector<RankStatus>& ranks, const std::filesystem::path& folder,
               std::vector<int>& dead) {
  for (const RankStatus& rank : ranks) {
    if (rank.state != RankState::running || is_alive(rank.pid)) continue;
    if (std::ranges::find(dead, rank.rank) != dead.end()) continue;
    // It may have marked itself between the two looks.
    const auto again = read_rank_status(folder / "ranks" / std::to_string(rank.rank));
    if (again && again->state == RankState::running) dead.push_back(rank.rank);
  }
}

/// Of ranks whose launcher has gone without them: they would go on in the folder of those that
/// follow.
void end_left(const std::vector<RankStatus>& ranks, std::vector<int>& dead) {
  for (const RankStatus& rank : ranks) {
    if (rank.state != RankState::running || !is_alive(rank.pid)) continue;
    ::kill(rank.pid, SIGKILL);
    dead.push_back(rank.rank);
  }
}

}  // namespace

WatchedEnd watch_ranks(const std::vector<std::string>& words, int ranks, bool gpu,
                       const std::filesystem::path& folder) {
  const std::vector<std::string> line = launcher_line(words, ranks, gpu);
  const std::int64_t start_ns =
      std::chrono::nanoseconds(SystemClock::now().time_since_epoch()).count();
  if (!start(line)) {
    const StopReason reason = asked == SIGUSR1 ? StopReason::requeue : StopReason::stop;
    return {.code = static_cast<int>(exit_code_of(reason)), .cause = EndCause::killed};
  }
  std::vector<int> dead;
  int status = 0;
  for (;; std::this_thread::sleep_for(kPoll)) {
    const bool ended = ::waitpid(launcher, &status, WNOHANG) == launcher;
    note_dead(ranks_since(folder, start_ns), folder, dead);
    if (ended) break;
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == kNotStarted) throw Error(ExitCode::missing, line[0] + " cannot be started");
  launcher = 0;
  const std::vector<RankStatus> all = ranks_since(folder, start_ns);
  end_left(all, dead);
  const RunCause cause = cause_of_end(all, dead, asked != 0 ? StopReason::stop : StopReason::none);
  WatchedEnd end{.code = code, .cause = cause.cause, .rank = std::nullopt};
  if (cause.rank != nullptr) end.rank = *cause.rank;
  if (cause.cause == EndCause::failed) end.code = cause.rank->exit_code;
  return end;
}

}  // namespace tessera
