#include "simulator/timeline/run_signal.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::int64_t beats_of(const fs::path& run) {
  std::int64_t beats = 0;
  for (const RankStatus& rank : read_rank_statuses(run)) beats += rank.beats;
  return beats;
}

/// Ranks that were killed leave files that say they run. Rank 0 holds the folder's lock for as long
/// as it lives; on a file system without locks it still gives signs of life.
bool was_killed(const fs::path& run) {
  Problems held;
  std::error_code unknown;  // then nobody is known to be dead
  if (!fs::exists(run / "lock", unknown) || !RunLock::take(run / "lock", 0, held)) return false;
  const std::int64_t before = beats_of(run);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return beats_of(run) == before;
}

/// Why nobody would hear of a request; empty where the run goes on.
std::string why_unheard(const fs::path& run) {
  const std::vector<RankStatus> ranks = read_rank_statuses(run);
  if (ranks.empty()) return "no ranks";
  const bool runs = std::ranges::any_of(
      ranks, [](const RankStatus& rank) { return rank.state == RankState::running; });
  if (!runs) return "ranks that have all ended";
  return was_killed(run) ? "ranks that were killed" : "";
}

void check_running(const fs::path& run) {
  const std::string why = why_unheard(run);
  if (why.empty()) return;
  throw Error(ExitCode::bad_input, {Problem{.file = (run / "ranks").string(),
                                            .found = why,
                                            .expected = "the folder of a run that goes on"}});
}

void go_on(const fs::path& run) {
  if (end_pause(run)) return;
  throw Error(ExitCode::bad_input, {Problem{.file = run.string(),
                                            .found = "no pause that was asked for",
                                            .expected = "a run that pauses"}});
}

}  // namespace

std::string_view name_of(RunSignal signal) {
  static constexpr std::array<std::string_view, kEveryRunSignal.size()> kNames{"pause", "go",
                                                                               "stop", "requeue"};
  return kNames.at(static_cast<std::size_t>(signal));
}

std::optional<RunSignal> run_signal_from(std::string_view name) {
  const auto found = std::ranges::find(kEveryRunSignal, name, name_of);
  return found == kEveryRunSignal.end() ? std::nullopt : std::optional(*found);
}

void send_signal(const fs::path& run, RunSignal signal, std::string_view who) {
  check_running(run);
  switch (signal) {
    case RunSignal::pause:
      return request_pause(run, who);
    case RunSignal::go:
      return go_on(run);
    case RunSignal::stop:
      return request_stop(run);
    case RunSignal::requeue:
      return request_stop(run, StopReason::requeue);
  }
}

}  // namespace tessera
