// The parent of a run's ranks on this host: starts the launcher, watches, cleans up.
//
// mpirun starts ranks on CPUs, the ranks' own program (its command `start`) on GPUs. The launcher
// sits in a process group of its own, so that Ctrl-C reaches this process only: the first creates
// RUN/stop, the second kills; SIGTERM is the same, and SIGUSR1 asks for an end after which the run
// is queued again, SIGUSR2 ends a pause. When a rank dies the files in RUN/ranks tell which and in
// which phase; a rank without a sign of life for the run's limit, or for which others waited so
// long, counts as lost. One run per process, which watches its signals (run_signals.h).
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "simulator/run_end/stalls.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {

struct SupervisedRun {
  std::vector<std::string> command;  // the ranks' program and arguments
  int ranks = 1;
  bool gpu = false;
  std::filesystem::path run;  // the run's folder; exists
};

/// What the launcher ended with and which unmarked rank was seen dead first (-1 = none was seen).
struct RunEnd {
  int launcher_code = 0;
  int first_dead = -1;
  std::vector<int> dead;                  // all of them, before this process killed any
  StopReason stopped = StopReason::none;  // what the user asked for
  std::optional<Stall> stall;
  bool removed = false;  // the run's folder is gone, or is another one
};

struct Verdict {
  int exit_code = 0;
  std::string message;    // empty for 0
  std::vector<int> lost;  // ranks that died or stalled, where that ended the run
};

/// Judges a run whose processes have all ended.
Verdict judge(const std::vector<RankStatus>& ranks, int rank_count, const RunEnd& end);

/// Runs to the end; the exit code is that of `tessera run`: 0; the ranks' own code; 75 when a rank
/// was lost, told on `log` with its phase; 74 when its folder was removed, which ends it; 130 when
/// stopped; 138 when stopped to be queued again; 69 without a launcher. No rank is alive
/// afterwards. Who was asked to stop before asks the ranks as soon as they are started.
Verdict supervise(const SupervisedRun& run, std::ostream& log);

/// Takes the devices of these ranks out of CUDA_VISIBLE_DEVICES, for the programs that this process
/// starts; `ranks` had one each, in the list's order.
void hide_devices(std::span<const int> lost, int ranks);

/// argv of the launcher with the ranks' command.
std::vector<std::string> launcher_command(const SupervisedRun& run);

}  // namespace tessera
