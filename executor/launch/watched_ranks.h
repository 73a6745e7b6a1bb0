// Ranks on this host whose command stays until they have ended, and says which of them was lost.
//
// Reads the files of FOLDER/ranks (simulator/timeline/rank_status.h), which the ranks write. What
// `tessera run` does for a run (cli/processes/supervise.h), for commands that start their ranks
// themselves. One call after another, on the process's only thread: the handlers of its signals are
// its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "simulator/run_end/end_cause.h"

namespace tessera {

struct WatchedEnd {
  int code = 0;  // of the rank that failed, else the launcher's
  EndCause cause = EndCause::none;
  std::optional<RankStatus> rank;  // that the cause is of
};

/// Starts the ranks as relaunch() does, passes SIGINT, SIGTERM, SIGHUP (unless it is ignored) and
/// SIGUSR1 on to their launcher, and returns once that has ended; no rank is alive then. Throws
/// Error (missing) where it cannot be started. A signal that comes between two calls ends the
/// second before it starts anything (killed).
WatchedEnd watch_ranks(const std::vector<std::string>& words, int ranks, bool gpu,
                       const std::filesystem::path& folder);

}  // namespace tessera
