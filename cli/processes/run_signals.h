// The signals that `tessera run` obeys, from the first line of its main function to its last.
//
// SIGINT and SIGTERM ask for an end, and a second one for it at once; SIGUSR1 asks for an end after
// which the run is queued again, SIGUSR2 ends a pause. A handler only notes them: what the process
// does next, or waits for, looks here. One per process; any thread may look.
#pragma once

#include <string>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {

/// Notes these signals from now on, for as long as the process lives; none has come yet.
void watch_run_signals();

/// What was asked for: to be queued again over an end.
StopReason asked_to_stop();
/// Whether somebody has asked for an end more than once.
bool asked_to_kill();
/// Whether somebody has ended a pause since the last call.
bool asked_to_go_on();

/// The code of a run that ends because of `reason`, which is not none.
ExitCode exit_code_of(StopReason reason);

/// What is said of a run that was asked to end before its ranks had started.
std::string words_of_early_end(StopReason reason);

/// Throws an Error of that code and these words where the run was asked to end.
void end_if_asked();

}  // namespace tessera
