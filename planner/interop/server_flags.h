// The arguments of vLLM's and SGLang's servers: which there are, so that others are reported.
//
// Pure functions over names; owns nothing.
#pragma once

#include <string>
#include <vector>

#include "planner/interop/config_values.h"

namespace tessera {

/// A Problem with did-you-mean for every flag that no version of the server has and that looks like
/// one that it has; the others that are not known, without their dashes, are added to `unknown`.
/// Precondition: `config` is of a server.
Problems misspelt_flags(const ConfigValues& config, std::vector<std::string>& unknown);

}  // namespace tessera
