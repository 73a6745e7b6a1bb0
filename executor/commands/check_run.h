// What `tessera-run train --check` does: it looks at all that a run reads before any rank starts.
//
// `tessera run` has it done in a process of its own. It starts processes (Python rewards are loaded
// as the ranks will load them) and leaves nothing behind.
#pragma once

#include "executor/commands/run_inputs.h"

namespace tessera {

/// Throws Error with everything that is known to be wrong. Prints what is said of the prompts,
/// unless `tessera run` is the parent: the run that follows has that in its log.
void check_run(const TrainOptions& options, const RunInputs& inputs);

}  // namespace tessera
