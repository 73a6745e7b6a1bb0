// Keys of verl 0.9.1 whose default is the value of another key: the reference's limits of tokens
// are the actor's, say, unless a script states them.
//
// Pure functions.
#pragma once

#include "planner/interop/config/config_values.h"

namespace tessera {

/// A configuration of verl with its defaults of such keys, and of those that they refer to, where
/// it does not state them. Those of other tools are left as they are.
ConfigValues with_inherited_defaults(ConfigValues config);

}  // namespace tessera
