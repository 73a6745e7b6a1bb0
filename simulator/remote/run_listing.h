// What a server says of a run in one answer: versions of its files, and what its ranks are doing.
//
// The ranks' files (simulator/timeline/rank_status.h) are in it whole: ranks keep them mapped, and
// neither size nor time of such a file says that it changed. JSON: {"tessera_run": 1, "now_ns": n,
// "files": [{"name", "size", "modified_ns", "id"}], "ranks": [{"rank", "record": hex}], "gone":
// [rank]}; "gone" where there is any. Plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"
#include "simulator/remote/served_files.h"

namespace tessera {

/// A rank's file as it stands in the folder.
struct RankRecord {
  int rank = 0;
  std::string bytes;
  bool operator==(const RankRecord&) const = default;
};

struct RunListing {
  /// Of one listing: ranks, bytes of a rank's file, bytes of the JSON.
  static constexpr int kMostRanks = 65'536;
  static constexpr std::size_t kMostRecordBytes = 1024, kMostBytes = std::size_t{64} << 20;

  std::int64_t now_ns = 0;  // clock of the server's host
  std::vector<RunFile> files;
  std::vector<RankRecord> ranks;
  std::vector<std::int64_t> gone;  // ranks that died without a mark (gone_ranks.h)
  bool operator==(const RunListing&) const = default;
};

/// As the folder is now; what is not there is left out.
RunListing list_run(const std::filesystem::path& run);

/// Versions of files, and numbers of ranks, as listings and mirror.json have them.
Node node_of(const std::vector<RunFile>& all);
Node node_of(const std::vector<std::int64_t>& ranks);

std::string to_json(const RunListing& listing);
/// Of a stranger: nullopt and Problems for names that are not served, negative sizes, and whatever
/// else no server of this version says. `from` names the server in problems.
std::optional<RunListing> listing_from(std::string_view text, const std::string& from,
                                       Problems& problems);

/// {"tessera_serve": 1, "runs": [NAME, ...]}: which runs a server has, in the order of its numbers.
std::string runs_json(const std::vector<std::string>& names);
/// Every name is that of a folder, and no path.
std::optional<std::vector<std::string>> runs_from(std::string_view text, const std::string& from,
                                                  Problems& problems);

}  // namespace tessera
