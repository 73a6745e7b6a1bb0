#include "cli/processes/supervise.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "cli/processes/child.h"
#include "cli/processes/run_signals.h"
#include "cost_models/documents/problem.h"
#include "simulator/flight_recorder/collective_waits.h"
#include "simulator/run_end/end_cause.h"
#include "simulator/run_end/rank_words.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPoll = 20ms;
constexpr auto kGrace = 2500ms;  // for the launcher to clear up after a death

void prepare_environment(const SupervisedRun& run) {
  // The ranks' standard error is the launcher's pipe, whatever stands at its other end.
  ::setenv("TESSERA_TERMINAL", ::isatty(STDERR_FILENO) != 0 ? "1" : "0", 1);
  // Ranks usually outnumber the cores here: who waits gives its core away.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  // Copies between processes need a permission that containers often lack; shared memory does not.
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned threads = std::max(1u, cores / static_cast<unsigned>(std::max(1, run.ranks)));
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 0);
}

/// Kills the launcher, the ranks it left and what those left. As their subreaper this process
/// becomes the parent of every orphan.
void kill_all(pid_t launcher, const std::filesystem::path& run) {
  if (launcher > 0) ::kill(-launcher, SIGKILL);
  for (const RankStatus& rank : read_rank_statuses(run)) {
    if (rank.state == RankState::running && is_alive(rank.pid)) ::kill(rank.pid, SIGKILL);
  }
  kill_children();
}

/// Notes ranks that are gone without a mark, the lowest of a look first.
void note_dead(const std::filesystem::path& run, RunEnd& end) {
  for (const RankStatus& rank : read_rank_statuses(run)) {
    if (rank.state != RankState::running || is_alive(rank.pid)) continue;
    if (std::ranges::find(end.dead, rank.rank) != end.dead.end()) continue;
    // It may have marked itself between the two looks.
    const auto again = read_rank_status(run / "ranks" / std::to_string(rank.rank));
    if (again && again->state == RankState::running) end.dead.push_back(rank.rank);
  }
  if (end.first_dead < 0 && !end.dead.empty()) end.first_dead = end.dead.front();
}

/// A rank that marked its own failure: the others wait for it in vain.
bool one_failed(const std::filesystem::path& run) {
  return std::ranges::any_of(read_rank_statuses(run), ended_by_error);
}

/// A rank that has waited for others in vain.
bool one_gave_up(const std::vector<RankStatus>& all) {
  return std::any_of(all.begin(), all.end(), [](const RankStatus& rank) {
    return rank.state == RankState::finished &&
           rank.exit_code == static_cast<int>(ExitCode::peer_lost);
  });
}

/// The rank that has stalled, once it is known.
std::optional<Stall> stalled(StallWatch& watch, const RunEnd& end,
                             const std::filesystem::path& run) {
  const std::vector<RankStatus> ranks = read_rank_statuses(run);
  if (end.first_dead >= 0) return std::nullopt;  // others wait for the dead one
  watch.look(ranks, Clock::now());
  return one_gave_up(ranks) ? watch.waited_for() : watch.over_limit();
}

/// Which folder of the file system it is; {} where there is none. Another error says nothing.
std::optional<std::pair<dev_t, ino_t>> identity_of(const std::filesystem::path& folder) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) == 0) return std::pair{found.st_dev, found.st_ino};
  if (errno == ENOENT || errno == ENOTDIR) return std::pair<dev_t, ino_t>{};
  return std::nullopt;
}

/// Watches until the launcher has ended or had to be killed.
RunEnd watch(pid_t launcher, const SupervisedRun& run, std::ostream& log) {
  RunEnd end;
  std::optional<Clock::time_point> died;
  StallWatch stalls;
  const auto folder = identity_of(run.run);
  for (;; std::this_thread::sleep_for(kPoll)) {
    int status = 0;
    const bool ended = ::waitpid(launcher, &status, WNOHANG) == launcher;
    if (!end.stall) note_dead(run.run, end);
    if (!end.stall) end.stall = stalled(stalls, end, run.run);
    if (!died && (end.first_dead >= 0 || one_failed(run.run))) died = Clock::now();
    if (asked_to_go_on()) end_pause(run.run);
    if (end.stopped == StopReason::none && asked_to_stop() != StopReason::none) {
      end.stopped = asked_to_stop();
      request_stop(run.run, end.stopped);
      // On a terminal a line of progress stands open.
      log << (::isatty(STDERR_FILENO) != 0 ? "\n" : "")
          << "saving and stopping before the next update; interrupt again to kill\n"
          << std::flush;
    }
    const auto now = identity_of(run.run);
    end.removed = folder && now && *now != *folder;
    if (ended) {
      end.launcher_code = exit_code_of_status(status);
      kill_all(-1, run.run);
      return end;
    }
    if (asked_to_kill()) end.stopped = StopReason::stop;
    if (asked_to_kill() || end.removed || end.stall || (died && Clock::now() - *died > kGrace)) {
      kill_all(launcher, run.run);
      end.launcher_code = 128 + SIGKILL;
      return end;
    }
  }
}

/// "stalled: rank 1 in phase gen of step 3, since 14:02:11 UTC: no sign of life for 6 s".
std::string stall_words(const std::vector<RankStatus>& ranks, const Stall& stall) {
  const auto found = std::ranges::find(ranks, stall.rank, &RankStatus::rank);
  const RankStatus rank = found == ranks.end() ? RankStatus{.rank = stall.rank} : *found;
  char text[80];
  std::snprintf(text, sizeof text, ": %s %.0f s",
                stall.silent ? "no sign of life for" : "others waited for it", stall.seconds);
  return "stalled: " + where_since(rank) + text;
}

/// Whom ranks waited for when one was lost, and in which collective: two sentences at most.
void tell_collectives(const std::filesystem::path& run, std::ostream& log) {
  constexpr std::size_t kMost = 2;
  const FlightRecords found = read_flight_records(run, read_rank_statuses(run));
  const std::vector<std::string> sentences =
      sentences_of(collective_waits(found.records, kNoLimit), found.records);
  for (std::size_t i = 0; i < std::min(kMost, sentences.size()); ++i) {
    log << "  " << sentences[i] << '\n';
  }
}

/// Of a run that somebody has asked to end, whether or not it could end in order.
Verdict as_asked(StopReason reason, bool killed) {
  const std::string words =
      reason == StopReason::requeue ? "to be queued again" : "stopped by the user";
  return {static_cast<int>(exit_code_of(reason)), words + (killed ? ", killed" : "")};
}

/// Of a run whose ranks say nothing against it, as far as they came.
Verdict judged_by_launcher(const std::vector<RankStatus>& ranks, int rank_count, int code) {
  constexpr int kLost = static_cast<int>(ExitCode::peer_lost);
  if (code == kNotStarted && ranks.empty()) {
    return {static_cast<int>(ExitCode::missing),
            "the launcher or the program is missing: mpirun (apt install openmpi-bin) for CPUs"};
  }
  if (code == 0 && static_cast<int>(ranks.size()) == rank_count) return {};
  for (int rank = 0; rank < rank_count; ++rank) {
    if (std::ranges::find(ranks, rank, &RankStatus::rank) != ranks.end()) continue;
    if (code != 0 && code < 128) {  // a refusal before the files
      return {code, "the ranks ended with code " + std::to_string(code)};
    }
    return {kLost, "rank " + std::to_string(rank) + " did not start"};
  }
  const auto killed = std::ranges::find(ranks, RankState::terminated, &RankStatus::state);
  if (killed != ranks.end()) return {kLost, where(*killed) + " was terminated"};
  return {static_cast<int>(ExitCode::internal),
          "the launcher ended with code " + std::to_string(code)};
}

}  // namespace

std::vector<std::string> launcher_command(const SupervisedRun& run) {
  const std::string ranks = std::to_string(run.ranks);
  std::vector<std::string> words =
      run.gpu
          ? std::vector<std::string>{run.command.front(), "start", "--ranks", ranks}
          : std::vector<std::string>{
                "mpirun", "--quiet", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "-n",     ranks,     run.command.front()};
  words.insert(words.end(), run.command.begin() + 1, run.command.end());
  return words;
}

Verdict judge(const std::vector<RankStatus>& ranks, int rank_count, const RunEnd& end) {
  if (end.removed) {
    return {
        static_cast<int>(ExitCode::io),
        "the run's folder was removed while the run worked: it is ended, and what it made there "
        "is lost"};
  }
  constexpr int kLost = static_cast<int>(ExitCode::peer_lost);
  const bool signalled = end.launcher_code > 128 &&
                         end.launcher_code != static_cast<int>(ExitCode::stopped) &&
                         end.launcher_code != static_cast<int>(ExitCode::requeue);
  std::vector<int> dead{end.first_dead};  // no rank's process goes on, so that all unmarked are
  for (const RankStatus& rank : ranks) dead.push_back(rank.rank);
  const auto [cause, rank] = cause_of_end(ranks, dead, end.stopped, signalled);
  if (cause == EndCause::failed) {
    return {rank->exit_code, where(*rank) + " failed with code " + std::to_string(rank->exit_code)};
  }
  if (end.stall) return {kLost, stall_words(ranks, *end.stall), {end.stall->rank}};
  switch (cause) {
    case EndCause::killed:
      return as_asked(end.stopped, true);
    case EndCause::lost:
      return {kLost, "lost " + where(*rank), end.dead.empty() ? std::vector{rank->rank} : end.dead};
    case EndCause::lost_peer:
      return {kLost, where(*rank) + " lost a peer"};
    case EndCause::requeued:
      return {static_cast<int>(ExitCode::requeue), "saved, to be queued again"};
    case EndCause::asked:
      return as_asked(end.stopped, false);
    case EndCause::by_rule:
      return {static_cast<int>(ExitCode::stopped), "stopped by a rule"};
    case EndCause::failed:
    case EndCause::none:
      break;
  }
  return judged_by_launcher(ranks, rank_count, end.launcher_code);
}

Verdict supervise(const SupervisedRun& run, std::ostream& log) {
  const std::string& program = run.command.front();
  if (program.find('/') != std::string::npos && ::access(program.c_str(), X_OK) != 0) {
    log << program << " is missing or cannot be executed: build it, or install all of Tessera\n";
    return {.exit_code = static_cast<int>(ExitCode::missing)};
  }
  std::error_code ignored;
  std::filesystem::remove_all(run.run / "ranks", ignored);
  forget_stop(run.run);
  adopt_orphans();
  prepare_environment(run);
  RunEnd end = watch(start_child(launcher_command(run)), run, log);
  // `tessera signal` asks there, too; who asked too late has a run that is done.
  if (end.stopped == StopReason::none && end.launcher_code != 0) {
    end.stopped = requested_stop(run.run);
  }
  Verdict verdict = judge(read_rank_statuses(run.run), run.ranks, end);
  if (!verdict.message.empty()) log << verdict.message << '\n' << std::flush;
  if (verdict.exit_code == static_cast<int>(ExitCode::peer_lost)) {
    tell_collectives(run.run, log);
    log << std::flush;
  }
  return verdict;
}

void hide_devices(std::span<const int> lost, int ranks) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> names;
  if (visible != nullptr) {
    std::istringstream list(visible);
    for (std::string name; std::getline(list, name, ',');) names.push_back(std::move(name));
  } else {
    for (int rank = 0; rank < ranks; ++rank) names.push_back(std::to_string(rank));
  }
  std::string left;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::find(lost, static_cast<int>(i)) != lost.end()) continue;
    left += (left.empty() ? "" : ",") + names[i];
  }
  ::setenv("CUDA_VISIBLE_DEVICES", left.c_str(), 1);
}

}  // namespace tessera
