// The arguments of vLLM's and SGLang's servers: which there are, so that others are reported.
//
// Pure functions over names; owns nothing.
#pragma once

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"

namespace tessera {

/// A Problem for every flag that no version of the server has, with did-you-mean where it looks
/// like one that it has. Precondition: `config` is of a server.
Problems unknown_flags(const ConfigValues& config);

}  // namespace tessera
