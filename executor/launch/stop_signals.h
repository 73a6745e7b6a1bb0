// Signals by which schedulers and people ask a rank to save and end.
//
// SIGTERM, SIGINT and SIGHUP (unless it is ignored) stop the run, SIGUSR1 stops it to be queued
// again (sbatch --signal=USR1@120). A handler only notes them; the ranks look between phases and
// agree. One per process.
#pragma once

#include "simulator/timeline/rank_status.h"

namespace tessera {

/// From now on these signals end the process at once, with the code of a run that was stopped or is
/// to be queued again: nothing has begun that would have to be saved. `all` as below.
void end_on_stop_signals(bool all);

/// SIGUSR1 is noted from now on. With `all` SIGTERM, SIGINT and SIGHUP are, too: where no parent
/// watches the ranks, the launcher's SIGTERM is the only word that there is; a parent has RUN/stop,
/// and its launcher's SIGTERM means that the run has failed.
void watch_stop_signals(bool all);

/// The strongest that has come: requeue over stop.
StopReason stop_signalled();

}  // namespace tessera
