#include "simulator/remote/gone_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// "process 17 on node7", as who took the lock last left it.
bool ran_here(const fs::path& run) {
  constexpr std::string_view kOn = " on ";
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code error;
  if (!fs::is_regular_file(run / "lock", error)) return false;
  std::ifstream lock(run / "lock");
  std::string line;
  std::getline(lock, line);
  const std::size_t on = line.find(kOn);
  return on != line.npos && line.substr(on + kOn.size()) == host.data();
}

// The first ranks are those of the lock's host; without a plan nobody knows how many they are.
int ranks_here(const fs::path& run) {
  Problems unheard;
  const auto text = read_text_file(run / "plan.json", std::size_t{64} << 20, unheard);
  const auto document = text ? parse_json(*text, "plan.json", unheard) : std::nullopt;
  if (!document) return 0;
  ObjectReader plan(*document, unheard);
  std::int64_t nodes = 0, per_node = 0;
  if (auto cluster = plan.object("cluster", false)) {
    cluster->required("nodes", nodes);
    cluster->required("gpus_per_node", per_node);
  }
  if (nodes <= 1) return nodes == 1 ? std::numeric_limits<int>::max() : 0;
  return static_cast<int>(std::clamp<std::int64_t>(per_node, 0, std::numeric_limits<int>::max()));
}

}  // namespace

std::vector<int> gone_ranks(const fs::path& run) {
  std::vector<int> gone;
  bool any_here = false;
  for (const RankStatus& rank : read_rank_statuses(run)) {
    if (rank.state != RankState::running) continue;
    const bool here = is_alive(rank.pid);
    any_here |= here;
    if (here) continue;
    // It may have ended well since it was read.
    const auto now = read_rank_status(run / "ranks" / std::to_string(rank.rank));
    if (now && now->state == RankState::running && now->pid == rank.pid) gone.push_back(rank.rank);
  }
  if (gone.empty() || !ran_here(run)) return {};
  // Somebody holds the lock, and none of the ranks is here: they are of another namespace.
  if (!any_here && !holder_of_lock(run / "lock").empty()) return {};
  const int here = ranks_here(run);
  std::erase_if(gone, [here](int rank) { return rank >= here; });
  return gone;
}

}  // namespace tessera
