// Where the pools of a verl job lie in the cluster: verl's keys count GPUs, they name none.
#include <algorithm>
#include <numeric>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "planner/interop/verl/verl_import.h"
#include "planner/space/place_pools.h"

namespace tessera {
namespace {

struct Pool {
  const char* name;
  std::vector<int> ranks;
};

std::vector<Pool> pools_of(const VerlImport& in) {
  std::vector<Pool> pools;
  for (const RolePlan& role : in.out.plan.roles) {
    const bool known = std::any_of(pools.begin(), pools.end(),
                                   [&](const Pool& pool) { return pool.ranks == role.ranks; });
    if (known) continue;
    pools.push_back({role.role == Role::rollout  ? "rollout"
                     : role.role == Role::reward ? "reward"
                                                 : "trainer",
                     role.ranks});
  }
  return pools;
}

std::string types_text(const ClusterSpec& cluster, std::span<const int> ranks) {
  return type_name(cluster, view_of(cluster, ranks));
}

// The first `count` ranks of the type that no other pool has taken; empty where it has too few.
std::vector<int> free_ranks(const ClusterSpec& cluster, const std::string& type, std::size_t count,
                            const std::set<int>& taken) {
  std::vector<int> ranks;
  for (std::int64_t rank = 0; rank < cluster.gpus() && ranks.size() < count; ++rank) {
    const int at = static_cast<int>(rank);
    if (!taken.contains(at) && device_of(cluster, at).name == type) ranks.push_back(at);
  }
  if (ranks.size() < count) ranks.clear();
  return ranks;
}

std::string known_types(const ClusterSpec& cluster) {
  std::string names;
  for (const NodeGroup& group : cluster.groups) {
    names += (names.empty() ? "" : ", ") + group.device.name;
  }
  return names;
}

bool check_names(VerlImport& in, const std::vector<Pool>& pools) {
  const std::size_t before = in.problems.size();
  for (const auto& [name, type] : in.options.gpu_types) {
    const bool pool = std::any_of(pools.begin(), pools.end(),
                                  [&](const Pool& each) { return each.name == name; });
    const auto& groups = in.out.plan.cluster.groups;
    const bool known = std::any_of(groups.begin(), groups.end(), [&](const NodeGroup& group) {
      return group.device.name == type;
    });
    std::string names;
    for (const Pool& each : pools) names += (names.empty() ? "" : ", ") + std::string(each.name);
    if (!pool) in.problems.push_back({"--types", name, "no such pool", names, ""});
    if (!known) {
      in.problems.push_back({"--types", name, "'" + type + "'",
                             groups.empty() ? "no --types: all GPUs are of one type"
                                            : known_types(in.out.plan.cluster),
                             ""});
    }
  }
  return in.problems.size() == before;
}

// Pools with a type first, in their order; the others on the ranks that are left.
void move_pools(VerlImport& in, const std::vector<Pool>& pools) {
  const ClusterSpec& cluster = in.out.plan.cluster;
  std::set<int> taken;
  std::vector<std::vector<int>> moved(pools.size());
  for (const bool typed : {true, false}) {
    for (std::size_t i = 0; i < pools.size(); ++i) {
      const auto type = in.options.gpu_types.find(pools[i].name);
      if ((type != in.options.gpu_types.end()) != typed) continue;
      std::vector<int>& ranks = moved[i];
      if (typed) {
        ranks = free_ranks(cluster, type->second, pools[i].ranks.size(), taken);
      } else {
        for (int at = 0; ranks.size() < pools[i].ranks.size() && at < cluster.gpus(); ++at) {
          if (!taken.contains(at)) ranks.push_back(at);
        }
      }
      if (ranks.size() < pools[i].ranks.size()) {
        in.problems.push_back({"--types", pools[i].name,
                               "too few GPUs of " + (typed ? type->second : cluster.name),
                               std::to_string(pools[i].ranks.size()), ""});
        return;
      }
      taken.insert(ranks.begin(), ranks.end());
    }
  }
  for (RolePlan& role : in.plan().roles) {
    for (std::size_t i = 0; i < pools.size(); ++i) {
      if (role.ranks != pools[i].ranks) continue;
      role.ranks = moved[i];
      break;
    }
  }
}

}  // namespace

void place_pools(VerlImport& in) {
  const ClusterSpec &given = in.options.cluster, &cluster = in.out.plan.cluster;
  const std::vector<Pool> pools = pools_of(in);
  if (!in.options.gpu_types.empty()) {
    if (!check_names(in, pools)) return;
    move_pools(in, pools);
  }
  std::int64_t gpus = 0;
  for (const RolePlan& role : in.out.plan.roles) {
    for (const int rank : role.ranks) gpus = std::max<std::int64_t>(gpus, rank + 1);
  }
  if (gpus > given.gpus()) {
    const std::string found = "the file's job takes " + std::to_string(gpus) +
                              " GPUs, the cluster " + given.name + " has " +
                              std::to_string(given.gpus());
    if (!given.groups.empty()) {
      in.problems.push_back({in.config.file, "", found, "no more than the cluster has",
                             "of clusters with several GPU types none can be added"});
      return;
    }
    in.note(found + ": planned on " + std::to_string(cluster.nodes) + " of its nodes.");
  }
  if (cluster.groups.empty()) return;
  std::string where;
  for (const Pool& pool : pools_of(in)) {
    where += (where.empty() ? "" : ", ") + std::string(pool.name) + " on " +
             types_text(cluster, pool.ranks);
  }
  if (in.options.gpu_types.empty()) {
    in.note("the cluster has several GPU types and verl's keys name none: " + where +
            ", in the order of the ranks; --types trainer=TYPE,rollout=TYPE says otherwise.");
  }
}

}  // namespace tessera
