// SPDX-License-Identifier: GPL-3.0-or-later
// How a run is, from what its ranks left: told apart by processes here, hosts, and signs of life.
//
// The process number of a rank says something only where the rank was started: on this host, and
// in this namespace of processes. Of other ranks only what they write is known. Pure but for
// read_holder and left_of. Times are nanoseconds of the system clock since 1970.
#pragma once

#include <QString>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/colours.h"
#include "simulator/remote/heart_watch.h"
#include "simulator/timeline/rank_status.h"

namespace tessera::gui {

/// Of a rank that did not say that it ended: its process is here, is here no more, or was never
/// here to be seen. Of a copy of a run elsewhere its heartbeat goes on, or has ended, or its host
/// says that its process is gone.
enum class Life { here, gone, elsewhere, beating, silent };

/// Who holds a run's folder.
struct RunHolder {
  std::string host;     // that its lock names; empty = it names none
  bool locked = false;  // a process holds it now, in whatever namespace of this host
};
/// Reads RUN/lock, and tries it for an instant.
RunHolder read_holder(const std::filesystem::path& run);

/// The name of this one.
std::string own_host();

/// The lives of the ranks, in their order. `alive[i]`: a process of the rank's number is here.
/// `ranks_per_host`: of the run's plan, 0 = all on one.
std::vector<Life> lives_of(const std::vector<RankStatus>& ranks, const std::vector<bool>& alive,
                           const RunHolder& holder, const std::string& own_host,
                           int ranks_per_host);

/// Of a copy of a run on another host, by heartbeats alone.
std::vector<Life> lives_by(const std::vector<Pulse>& pulses);

enum class RunState {
  none,
  loading,
  running,
  paused,
  stalled,
  lost,
  failed,
  stopped,
  finished,
  unseen,
  unreached
};

/// How it is said: what is lost or failed is bad.
Tone toneOf(RunState state);

/// What is known of a run as a whole.
struct RunSummary {
  RunState state = RunState::none;
  QString text;           // "rank 2 was lost in old_log_prob of step 67"
  int stalled_rank = -1;  // whom the others wait for where it is stalled; -1 = nobody
};

/// `stopped`: what the run was asked; `step_s`: a mean step, 0 = unknown; `last_sign_ns`: when the
/// run last wrote a step; `unread`: of whom nothing is known, so that the run has not ended well.
RunSummary summary_of(const std::vector<RankStatus>& ranks, const std::vector<Life>& lives,
                      StopReason stopped, double step_s, std::int64_t last_sign_ns,
                      std::int64_t now_ns, const std::vector<UnreadRank>& unread = {});

/// What a run that has ended left for one who goes on with it.
struct LeftRun {
  std::string other_host;  // where its ranks were; empty = on this host, as far as is known
  bool held = false;       // the command that started them has not ended
  bool plan = false, config = false;       // plan.json and run.yaml are there
  std::optional<std::int64_t> checkpoint;  // step of the newest complete one
};
LeftRun left_of(const std::filesystem::path& run);

/// Why `tessera run --resume` cannot go on with it here; empty where it can. `left`: of one that
/// has ended; `copied`: its folder is a copy of a run on another host.
QString whyNotResumed(RunState state, bool copied, const std::optional<LeftRun>& left);

/// Those of `files.unread` that are a fault: while ranks load, others may not have begun.
std::vector<UnreadRank> faulty_ranks(const RankFiles& files);
/// "its file is missing", "its file cannot be read: 12 bytes instead of 208".
QString faultOf(const UnreadRank& rank);

}  // namespace tessera::gui
