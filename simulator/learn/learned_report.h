// What was learned from runs, in words and for programs.
//
// Pure functions.
#pragma once

#include <string>

#include "simulator/learn/learned_runs.h"

namespace tessera {

/// Whether the constants are worth using, in one line without its end.
std::string worth_text(const LearnedRuns& learned);
/// What they are worth, constants that moved, those that did not and why, the runs' phases under
/// both, what was held out, lengths and memory.
std::string to_text(const LearnedRuns& learned);
/// docs/schemas/learned.schema.json.
std::string to_json(const LearnedRuns& learned);

}  // namespace tessera
