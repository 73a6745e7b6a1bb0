// The words by which plans and settings name how much is computed again.
#pragma once

#include <string_view>

#include "cost_models/memory.h"

namespace tessera {

std::string_view name_of(Recompute recompute);

}  // namespace tessera
