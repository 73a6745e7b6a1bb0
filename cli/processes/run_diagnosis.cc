#include "cli/processes/run_diagnosis.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>
#include <thread>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "simulator/run_end/rank_words.h"
#include "simulator/timeline/metrics.h"
#include "simulator/timeline/run_folder.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTail = 12, kStackLines = 60;
constexpr auto kLooked = std::chrono::seconds(3);  // a living rank beats five times a second
constexpr auto kLongWait = std::chrono::seconds(2);
constexpr int kOutOfMemory = 71;  // executor/commands: the run's account says why

std::vector<std::string> last_lines(const fs::path& file, std::size_t most) {
  std::deque<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > most) lines.pop_front();
  }
  return {std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end())};
}

std::string whole_text(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void add_numbers(const fs::path& run, RunDiagnosis& result) {
  Problems ignored;  // a log that is cut says what it says
  const auto steps = read_metrics(run / "metrics.jsonl", ignored);
  if (!steps || steps->empty()) return;
  result.last_step = steps->back().step;
  for (const auto& [name, value] : steps->back().data) {
    if (name.find("memory") != std::string::npos) result.memory.emplace_back(name, value);
  }
}

/// Innermost calls of every thread, by gdb; its reason where it cannot say.
std::vector<std::string> stacks_of(int pid) {
  const std::string command = "gdb -p " + std::to_string(pid) +
                              " -batch -nx -ex 'set pagination off'"
                              " -ex 'thread apply all -q backtrace 12' 2>/dev/null";
  std::vector<std::string> lines;
  FILE* const pipe = ::popen(command.c_str(), "r");
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
    std::string line = buffer;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    const bool frame = line.starts_with("#") || line.starts_with("Thread ");
    if (frame && lines.size() < kStackLines) lines.push_back(std::move(line));
  }
  if (pipe != nullptr) ::pclose(pipe);
  if (lines.empty()) {
    lines.emplace_back("no stack: gdb is missing (apt install gdb), or may not look at pid " +
                       std::to_string(pid));
  }
  return lines;
}

/// As many as the plan places; 0 where there is no plan that can be read.
int planned_ranks(const fs::path& run) {
  Problems unheard;
  const auto plan = read_plan(run / "plan.json", unheard);
  return plan ? plan->world_size() : 0;
}

std::vector<RankFinding> ranks_of(const fs::path& run, std::vector<RankStatus> ranks, bool stacks) {
  std::vector<RankFinding> found;
  for (RankStatus& status : ranks) {
    const bool alive = status.state == RankState::running && is_alive(status.pid);
    found.push_back({.status = std::move(status), .alive = alive, .silent = false, .stacks = {}});
  }
  for (RankFinding& rank : found) rank.silent = rank.alive;
  const auto until = std::chrono::steady_clock::now() + kLooked;
  while (std::ranges::any_of(found, &RankFinding::silent) &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (RankFinding& rank : found) {
      const auto now = read_rank_status(run / "ranks" / std::to_string(rank.status.rank));
      if (now && now->beats != rank.status.beats) rank.silent = false;
    }
  }
  for (RankFinding& rank : found) {
    if (stacks && rank.alive) rank.stacks = stacks_of(rank.status.pid);
  }
  return found;
}

void add_collectives(const fs::path& run, RunDiagnosis& result) {
  std::vector<RankStatus> statuses;
  for (const RankFinding& rank : result.ranks) statuses.push_back(rank.status);
  result.collectives = read_flight_records(run, statuses);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t until_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - kLongWait).count();
  result.waits = collective_waits(result.collectives.records, result.alive ? until_ns : kNoLimit);
}

bool ended_well(const RankFinding& rank) {
  return rank.status.state == RankState::finished && rank.status.exit_code == 0;
}

/// Of ranks that have all ended: those that did not say so died, whoever was first. Where one is
/// waited for, what became of the others came after it. Of what is not known nothing ended well.
Verdict judged(const fs::path& run, const std::vector<RankFinding>& ranks,
               const std::vector<UnreadRank>& unread, const std::vector<int>& waited_for) {
  std::vector<RankStatus> statuses;
  RunEnd end;
  for (const RankFinding& rank : ranks) {
    statuses.push_back(rank.status);
    if (!ended_well(rank)) end.launcher_code = 1;  // what the launcher said is not known here
    if (rank.status.state == RankState::running) end.dead.push_back(rank.status.rank);
  }
  if (!end.dead.empty()) end.first_dead = end.dead.front();
  for (const int rank : waited_for) {
    if (std::ranges::find(end.dead, rank) != end.dead.end()) end.first_dead = rank;
  }
  end.stopped = requested_stop(run);
  Verdict verdict = judge(statuses, static_cast<int>(ranks.size()), end);
  if (verdict.exit_code == 0 && !unread.empty()) {
    verdict = {.exit_code = static_cast<int>(ExitCode::peer_lost),
               .message = describe(unread.front()) + ", so that its end is not known"};
  }
  return verdict;
}

/// Else of train-reward, or of ranks that were started without `tessera run`.
bool is_of_run(const fs::path& run) { return fs::exists(run / "run.yaml"); }

std::string go_on(const fs::path& run) {
  if (!is_of_run(run)) return "its own command with --resume (resume_mode: auto)";
  return "tessera run " + (run / "plan.json").string() + " --config " +
         (run / "run.yaml").string() + " --resume -o " + run.string();
}

/// What the code of a run that has ended asks for; empty where it asks for nothing.
std::string advice_of_code(const fs::path& run, const RunDiagnosis& result) {
  const int code = result.verdict.exit_code;
  const auto is = [code](ExitCode other) { return code == static_cast<int>(other); };
  if (code == kOutOfMemory || !result.out_of_memory.empty()) {
    return "out of memory: " + (run / "oom.json").string() +
           " has the account and the limit that would fit; --on-oom replan does it";
  }
  if (is(ExitCode::bad_input)) {
    return "an input was refused: the log's last lines name the file and the place";
  }
  if (is(ExitCode::io)) {
    return "a file could not be written or read: look at the disk (df) and the log";
  }
  if (is(ExitCode::check_failed)) {
    return "numbers of the run are not what they must be: the log has which; a run that has "
           "diverged goes on with --resume and a lower learning rate from its newest checkpoint "
           "that no step has shown to be ruined (trainer.resume_from_path names an older one)";
  }
  if (is(ExitCode::missing)) {
    return "something the run needs is missing, or a server ended: see the log; tessera doctor "
           "looks at this machine";
  }
  if (!result.verdict.lost.empty()) {
    const std::string died =
        "a process ended without a word: killed (dmesg | grep -i 'killed process' tells of a "
        "full host memory), or its host is gone";
    return died + (is_of_run(run) ? "; with --restarts N a run goes on by itself, with --elastic "
                                    "without what was lost"
                                  : "");
  }
  if (std::ranges::all_of(result.ranks, ended_well) && !result.unread.empty()) {
    return "a rank's file in " + (run / "ranks").string() +
           " tells how it ended: without it what the run printed last, and log.txt, tell how far "
           "it came";
  }
  if (is(ExitCode::peer_lost)) {
    return "its ranks were terminated: by SIGTERM, or as the command that had started them was "
           "killed";
  }
  return is(ExitCode::internal) ? "an error of tessera's own: the log has it; please report it"
                                : "";
}

void add_advice(const fs::path& run, RunDiagnosis& result) {
  std::vector<std::string>& advice = result.advice;
  if (result.alive) {
    for (const RankFinding& rank : result.ranks) {
      if (!rank.silent) continue;
      advice.push_back(
          "rank " + std::to_string(rank.status.rank) + " gives no sign of life: is pid " +
          std::to_string(rank.status.pid) +
          " stopped (kill -CONT), or its disk or GPU stuck? --stacks shows where it is");
    }
    for (const int rank : result.waits.waited_for) {
      if (!advice.empty()) break;  // who gives no sign of life is waited for
      advice.push_back("others wait for rank " + std::to_string(rank) +
                       ": --stacks shows where it is");
    }
    if (advice.empty()) advice.emplace_back("nothing: it runs; --stacks shows what each rank does");
    return;
  }
  if (result.ranks.empty() && result.unread.empty()) {
    advice.emplace_back("no rank has started: what the command said on the terminal tells why");
    return;
  }
  if (std::string said = advice_of_code(run, result); !said.empty()) {
    advice.push_back(std::move(said));
  }
  if (result.verdict.exit_code == 0) {
    advice.emplace_back("nothing: the run has ended as planned");
  } else if (result.checkpoint) {
    advice.push_back("go on from step " + std::to_string(*result.checkpoint) + ": " + go_on(run));
  } else {
    advice.push_back(
        "there is no checkpoint (trainer.save_freq, --save-freq write some): it begins again "
        "with " +
        go_on(run));
  }
}

}  // namespace

std::optional<RunDiagnosis> diagnose(const fs::path& run, bool stacks, Problems& problems) {
  if (!fs::is_directory(run / "ranks") && !fs::exists(run / "run.yaml")) {
    problems.push_back({.file = run.string(),
                        .place = {},
                        .found = fs::exists(run) ? "neither ranks/ nor run.yaml" : "nothing",
                        .expected = "the folder of a run",
                        .hint = {}});
    return std::nullopt;
  }
  RunDiagnosis result;
  RankFiles files = read_rank_files(run, planned_ranks(run));
  result.unread = std::move(files.unread);
  result.ranks = ranks_of(run, std::move(files.ranks), stacks);
  result.alive = std::ranges::any_of(result.ranks, &RankFinding::alive);
  add_collectives(run, result);
  if (!result.alive && !(result.ranks.empty() && result.unread.empty())) {
    result.verdict = judged(run, result.ranks, result.unread, result.waits.waited_for);
  }
  result.holder = holder_of_lock(run / "lock");
  result.checkpoint = newest_step(run / kCheckpointsFolder);
  add_numbers(run, result);
  result.out_of_memory = whole_text(run / "oom.json");
  result.log_tail = last_lines(run / "log.txt", kTail);
  add_advice(run, result);
  return result;
}

std::string describe(const RankFinding& rank) {
  const RankStatus& status = rank.status;
  const std::string text = where_since(status) + ": ";
  if (status.state == RankState::finished) {
    return text + "ended with code " + std::to_string(status.exit_code);
  }
  if (status.state == RankState::terminated) return text + "was terminated";
  if (!rank.alive) return text + "died without a word";
  if (rank.silent) return text + "lives and gives no sign of life";
  if (status.phase == "paused") return text + "pauses";
  return text + (status.waiting ? "waits for a message of another rank" : "works");
}

std::string describe(const UnreadRank& rank) {
  return "rank " + std::to_string(rank.rank) + ": its file " +
         (rank.missing ? "is missing" : "cannot be read: " + rank.fault);
}

}  // namespace tessera
