// Which known family a config.json of an unknown one is nearest to, for its refusal. Pure.
#pragma once

#include <string>

#include "cost_models/documents/object_reader.h"

namespace tessera {

/// "the closest by name is 'x'", of the same maker or a name with few edits; else
/// "the closest by its keys is 'x'", whose kinds of attention and experts are those that the keys
/// of `config`, or of its text_config, tell of.
std::string closest_family(const std::string& model_type, const ObjectReader& config);

}  // namespace tessera
