// What became of a run, from what it left in its folder: for `tessera doctor RUN`.
//
// Reads only; the run may be alive, or its ranks may have died without a word. Whether a rank's
// process lives is known of this host alone. Seconds, bytes as metrics have them; one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/processes/supervise.h"
#include "cost_models/documents/problem_list.h"
#include "simulator/flight_recorder/collective_waits.h"

namespace tessera {

struct RankFinding {
  RankStatus status;
  bool alive = false;               // its process is on this host
  bool silent = false;              // it lives and gave no sign of life while it was looked at
  std::vector<std::string> stacks;  // lines of its threads' calls, where asked for
};

struct RunDiagnosis {
  Verdict verdict;     // of a run that has ended
  bool alive = false;  // some rank lives
  std::string holder;  // who holds the run's lock now; empty = nobody
  std::vector<RankFinding> ranks;
  std::vector<UnreadRank> unread;  // of whom nothing is known: the run has not ended as planned
  FlightRecords collectives;       // the last ones of each rank
  CollectiveWaits waits;           // of a run that lives, those that last for two seconds at least
  std::optional<std::int64_t> last_step, checkpoint;   // of metrics.jsonl; the newest complete one
  std::vector<std::pair<std::string, double>> memory;  // metrics of memory of the last step
  std::string out_of_memory;                           // oom.json, where there is one
  std::vector<std::string> log_tail;
  std::vector<std::string> advice;  // what to do, most likely first
};

/// Waits three seconds at most for a sign of life of each rank that lives. With `stacks` gdb is
/// asked for what each of them does. nullopt with a Problem where the folder is none of a run.
std::optional<RunDiagnosis> diagnose(const std::filesystem::path& run, bool stacks,
                                     Problems& problems);

/// "rank 2 in phase gen of step 31", what it is or how it ended, in one line.
std::string describe(const RankFinding& rank);
/// "rank 2: its file is missing", or why it cannot be read.
std::string describe(const UnreadRank& rank);

}  // namespace tessera
