// The reasons why nothing fits, for programs.
#pragma once

#include <string>

#include "cost_models/documents/document.h"
#include "planner/explain/infeasible.h"

namespace tessera {

/// Adds feasible (false), shortages, reasons and nearest_fix to a map.
void add_to(Node& map, const Infeasible& infeasible);

std::string to_json(const Infeasible& infeasible);

}  // namespace tessera
