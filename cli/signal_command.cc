// tessera signal: what a person tells a run that goes on, through files in its folder.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cost_models/documents/problem.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Signal {
  const char* word;
  void (*give)(const fs::path& run);
};

void go(const fs::path& run) {
  if (end_pause(run)) return;
  throw Error(ExitCode::bad_input, {Problem{.file = run.string(),
                                            .found = "no pause that was asked for",
                                            .expected = "a run that pauses"}});
}

constexpr std::array kSignals = {
    Signal{"pause", [](const fs::path& run) { request_pause(run, "tessera signal"); }},
    Signal{"go", go}, Signal{"stop", [](const fs::path& run) { request_stop(run); }},
    Signal{"requeue", [](const fs::path& run) { request_stop(run, StopReason::requeue); }}};

std::int64_t beats_of(const fs::path& run) {
  std::int64_t beats = 0;
  for (const RankStatus& rank : read_rank_statuses(run)) beats += rank.beats;
  return beats;
}

/// Ranks that were killed leave files that say they run. Rank 0 holds the folder's lock for as long
/// as it lives; on a file system without locks it still gives signs of life.
bool was_killed(const fs::path& run) {
  Problems held;
  if (!fs::exists(run / "lock") || !RunLock::take(run / "lock", 0, held)) return false;
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

}  // namespace

void add_signal(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("signal", "Lets a run pause, go on, stop, or be queued again");
  struct Options {
    std::string run, word;
  };
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "Folder of the run")->required();
  std::vector<std::string> words;
  for (const Signal& signal : kSignals) words.emplace_back(signal.word);
  command->add_option("signal", options->word, "pause, go, stop or requeue")
      ->required()
      ->check(CLI::IsMember(words));
  command->callback([options] {
    check_running(options->run);
    for (const Signal& signal : kSignals) {
      if (options->word == signal.word) signal.give(options->run);
    }
  });
}

}  // namespace tessera
