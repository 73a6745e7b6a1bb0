// The row of an export target whose name is known.
#pragma once

#include <string_view>

#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"

namespace tessera {

inline const ExportTarget& target_of(std::string_view name) {
  Problems problems;
  return *export_target_from(name, problems);
}

}  // namespace tessera
