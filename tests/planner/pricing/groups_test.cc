// Where a candidate's groups lie, against the rank map of a plan that deals them.
#include "planner/pricing/role/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "cost_models/layout/rank_map.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/role/full_gather.h"
#include "planner/request/candidate.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

std::string told(const Candidate& c, int per_node) {
  return "tp" + std::to_string(c.tp) + " cp" + std::to_string(c.cp) + " pp" + std::to_string(c.pp) +
         " dp" + std::to_string(c.dp) + " shard" + std::to_string(c.dp_shard) + " ep" +
         std::to_string(c.ep) + " etp" + std::to_string(c.etp) + " on " + std::to_string(per_node);
}

void compare(const PlanRequest& request, const Candidate& candidate, int layers) {
  Plan plan;
  plan.engine = request.engine;
  plan.cluster = request.cluster;
  RolePlan role;
  role.role = candidate.role;
  role.layout = layout_of(candidate, layers);
  role.ranks.resize(static_cast<std::size_t>(candidate.gpus));
  std::iota(role.ranks.begin(), role.ranks.end(), 0);
  role.rank_order = dealt_order(candidate, request.traits);
  plan.roles.push_back(role);
  const CandidateGroups dealt = groups_of(plan, role, rank_map_of(plan, candidate.role));
  const CandidateGroups own = groups_of(candidate, request);
  const std::string which =
      request.engine + " " + told(candidate, static_cast<int>(request.cluster.gpus_per_node));
  // Which links of a node groups cross is told of those alone that fill nodes, or parts of them.
  const bool fills = std::has_single_bit(static_cast<unsigned>(candidate.gpus));
  for (GroupShape CandidateGroups::*const group :
       {&CandidateGroups::tp, &CandidateGroups::cp, &CandidateGroups::replicas,
        &CandidateGroups::shard, &CandidateGroups::replicated, &CandidateGroups::ep,
        &CandidateGroups::expert_replicas, &CandidateGroups::hop}) {
    const GroupShape &one = own.*group, &other = dealt.*group;
    EXPECT_EQ(std::pair(one.ranks, one.nodes), std::pair(other.ranks, other.nodes)) << which;
    if (!fills) continue;
    EXPECT_EQ(one, other) << which;
  }
}

// Ranks and nodes of the groups that hold one copy, counted over a rank map: dense ranks of equal
// replica, or ranks whose experts are of the same copy.
std::pair<int, int> counted_copy(const RankMap& map, const Candidate& candidate, bool experts,
                                 int per_node) {
  std::map<std::pair<int, int>, std::set<int>> ranks, nodes;
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    const RankCoord& at = map.coords[i];
    const std::pair key = experts ? std::pair(expert_coord(map.layout, at).edp, 0)
                                  : std::pair(at.dp_replicate, candidate.zero == 3 ? 0 : at.cp);
    ranks[key].insert(map.ranks[i]);
    nodes[key].insert(map.ranks[i] / per_node);
  }
  std::pair most(0, 0);
  for (const auto& [key, own] : ranks)
    most.first = std::max(most.first, static_cast<int>(own.size()));
  for (const auto& [key, own] : nodes) {
    most.second = std::max(most.second, static_cast<int>(own.size()));
  }
  return most;
}

void compare_copies(const PlanRequest& request, const Candidate& candidate, int layers) {
  const RankOrder order = dealt_order(candidate, request.traits);
  std::vector<int> ranks(static_cast<std::size_t>(candidate.gpus));
  std::iota(ranks.begin(), ranks.end(), 0);
  Problems problems;
  const RankMap map =
      make_rank_map(order, layout_of(candidate, layers), ranks, nullptr, "", problems);
  ASSERT_TRUE(problems.empty());
  const int dense = candidate.tp * candidate.dp_shard * (candidate.zero == 3 ? candidate.cp : 1);
  const int together = gathering_ranks(candidate);
  const auto per_node = static_cast<int>(request.cluster.gpus_per_node);
  const GroupShape group = copy_group(candidate, together, order, request.cluster);
  EXPECT_EQ(std::pair(group.ranks, group.nodes),
            counted_copy(map, candidate, candidate.ep > dense, per_node))
      << request.engine << " " << told(candidate, per_node);
}

// Degrees that do not divide a node among them: three and five stages, six and twelve replicas.
TEST(Groups, SpanTheNodesThatTheirRankMapSays) {
  int compared = 0;
  for (const char* engine : {"tessera", "verl-megatron"}) {
    for (const int per_node : {4, 8, 6}) {
      PlanRequest request = request_of(tiny_model(), workload_of("grpo", KlPlace::none, false),
                                       cluster_of(per_node, 64, 80));
      request.engine = engine;
      request.traits = traits_of(engine);
      if (per_node == 8) {
        request.cluster.pcie_switch = {2, gb_per_s(32)};
        request.cluster.socket = {4, gb_per_s(20)};
      }
      for (const int tp : {1, 2, 4}) {
        if (per_node % tp != 0) continue;
        for (const int cp : {1, 2}) {
          for (const int pp : {1, 2, 3, 5, 8}) {
            for (const int dp : {1, 2, 3, 6, 8, 12}) {
              for (const int ep : {1, 2, 4, 8, 16}) {
                const int block = tp * cp;
                if (block * dp % ep != 0 || (ep > block ? ep % block : block % ep) != 0) continue;
                Candidate candidate{{.tp = tp, .cp = cp, .pp = pp, .dp = dp}, Role::actor};
                candidate.gpus = tp * cp * pp * dp;
                candidate.ep = ep;
                candidate.dp_shard = dp % 2 == 0 && pp == 3 ? dp / 2 : 1;
                candidate.zero = candidate.dp_shard > 1 ? 3 : 0;
                compare(request, candidate, 40);
                compare_copies(request, candidate, 40);
                ++compared;
                if (::testing::Test::HasFailure()) return;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace tessera
