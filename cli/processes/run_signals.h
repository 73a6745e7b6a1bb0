// The signals that `tessera run` obeys, from the first line of its main function to its last.
//
// SIGINT and SIGTERM ask for an end, and a second one for it at once; SIGUSR1 asks for an end after
// which the run is queued again, SIGUSR2 ends a pause. SIGHUP asks for an end, too, once however
// often it comes (a terminal that goes away sends several), unless it is ignored, as nohup has it.
// While nothing has begun they end the process there and then; later a handler notes them, and what
// the process does next, or waits for, looks here. One per process; any thread may look.
#pragma once

#include <string_view>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {

/// From now on these signals end the process, with a line on standard error and the code of a run
/// that was stopped or is to be queued again: it has written nothing.
void end_on_run_signals();

/// From now on they are noted, for as long as the process lives; none has come yet.
void watch_run_signals();

/// What was asked for: to be queued again over an end.
StopReason asked_to_stop();
/// Whether somebody has asked for an end more than once.
bool asked_to_kill();
/// Whether somebody has ended a pause since the last call.
bool asked_to_go_on();

/// The line about a run that was asked to end before its ranks had started.
std::string_view words_of_early_end(StopReason reason);

}  // namespace tessera
