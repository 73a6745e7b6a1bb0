// Which environment variables a plan may set in the jobs that are made of it.
//
// A plan is a file that others may have written, and its variables end in scripts that users start.
// It may set what Tessera writes itself and those settings of NCCL whose values are numbers and
// words: nothing that names a program, a library, a file or an address.
#pragma once

#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct EnvironmentVariable;

/// Appends a problem for every variable of the plan `file` that is another one, stands twice or has
/// a value that none of them takes.
void check_environment(const std::vector<EnvironmentVariable>& environment, const std::string& file,
                       Problems& problems);

}  // namespace tessera
