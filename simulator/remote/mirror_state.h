// What stands in a folder that is a copy of a run elsewhere: mirror.json.
//
// Whoever opens the folder knows by it that processes of this host are none of the run's, and how
// old what is shown is. Times are nanoseconds of a system clock since 1970. Plain data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "simulator/remote/remote_name.h"
#include "simulator/remote/served_files.h"

namespace tessera {

struct MirrorState {
  RemoteName name;
  std::int64_t as_of_ns = 0;       // clock of the run's host at the last contact
  std::int64_t reached_ns = 0;     // clock of this host then
  std::string fault;               // why the server is not reached; empty = it was, the last time
  std::vector<RunFile> files;      // versions that the copies are of
  std::vector<std::int64_t> gone;  // ranks whose processes the run's host had no more then

  /// Nobody has reached the server for so long that what is shown is old: 30 s, or a fault.
  bool is_old(std::int64_t now_ns) const;
};

/// nullopt where the folder is no copy.
std::optional<MirrorState> read_mirror_state(const std::filesystem::path& folder);
/// Throws Error(io).
void write_mirror_state(const MirrorState& state, const std::filesystem::path& folder);

}  // namespace tessera
