// Which ranks of a run died without a mark, as only the host can know that they ran on.
//
// A process number says something on the host that RUN/lock names, of the ranks that the plan
// places there, and where it is of this namespace of processes. Any thread.
#pragma once

#include <filesystem>
#include <vector>

namespace tessera {

/// Their numbers, ascending: each says that it runs, and no process of its number is here. Empty
/// where that says nothing.
std::vector<int> gone_ranks(const std::filesystem::path& run);

}  // namespace tessera
