// Groups of ranks under leaf switches that several nodes share: what the planner prices, against
// flows that share the network's links by max-min fairness.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/role/groups.h"
#include "planner/request/candidate.h"
#include "simulator/engine/simulate.h"
#include "simulator/network/collective_links.h"
#include "simulator/network/flows.h"
#include "tests/planner/planned.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

ClusterSpec leaves_of(int nodes, int nodes_per_leaf, int cards, double oversubscription) {
  ClusterSpec cluster = cluster_of(8, nodes, 80);
  cluster.nics_per_node = cards;
  cluster.nic = gb_per_s(50);
  cluster.oversubscription = oversubscription;
  cluster.nodes_per_leaf = nodes_per_leaf;
  return cluster;
}

/// A kind of groups: coordinates that members have in common.
struct Kind {
  const char* name;
  GroupShape CandidateGroups::*group;
  std::array<int, 4> (*key)(const RankCoord&);
};
constexpr std::array kKinds{
    Kind{"tp", &CandidateGroups::tp,
         [](const RankCoord& at) {
           return std::array{at.cp, at.pp, at.dp_replicate, at.dp_shard};
         }},
    Kind{"replicas", &CandidateGroups::replicas,
         [](const RankCoord& at) {
           return std::array{at.tp, at.pp, 0, 0};
         }},
    Kind{"shard", &CandidateGroups::shard,
         [](const RankCoord& at) {
           return std::array{at.tp, at.pp, at.dp_replicate, at.cp};
         }},
    Kind{"replicated", &CandidateGroups::replicated, [](const RankCoord& at) {
           return std::array{at.tp, at.pp, at.dp_shard, at.cp};
         }}};

/// When the last of all groups of a kind ends that begin a collective at once.
double flowed(const RankMap& map, const Kind& kind, Collective collective, Traffic bytes,
              const GroupShape& shape, const ClusterNetwork& network) {
  std::map<std::array<int, 4>, std::vector<int>> groups;
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    groups[kind.key(map.coords[i])].push_back(map.ranks[i]);
  }
  std::vector<Flow> flows;
  for (auto& [key, members] : groups) {
    std::sort(members.begin(), members.end());
    LinkWeights weights;
    add_collective(network, collective, members, weights);
    Flow& flow = flows.emplace_back();
    flow.bytes = member_bytes(collective, bytes, shape).card.value;
    for (const auto& [link, weight] : weights) {
      flow.links.push_back(link);
      flow.weights.push_back(weight);
    }
  }
  const std::vector<double> ends = finish_times(network.capacity, flows);
  return *std::max_element(ends.begin(), ends.end());
}

/// A layout of the actor on 24 nodes at most, and where its ranks lie.
struct Dealt {
  PlanRequest request;
  Candidate candidate;
  RankMap map;
};

Dealt draw(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int> all) {
    return all.begin()[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
  };
  Dealt dealt{request_of(tiny_model(), workload_of("grpo", KlPlace::none, false),
                         leaves_of(24, pick({2, 3, 4, 5, 8, 12}), 8, pick({1, 2, 3, 5, 7}))),
              {},
              {}};
  dealt.request.engine = pick({0, 1}) == 0 ? "tessera" : "verl-megatron";
  dealt.request.traits = traits_of(dealt.request.engine);
  Candidate candidate{{.tp = pick({1, 2, 4, 8, 16}),
                       .cp = pick({1, 2}),
                       .pp = pick({1, 2, 3, 4}),
                       .dp = pick({1, 2, 4, 6, 8, 12, 16, 24})},
                      Role::actor};
  candidate.gpus = candidate.tp * candidate.cp * candidate.pp * candidate.dp;
  if (candidate.gpus > 192 || candidate.gpus % 8 != 0) return draw(random);
  candidate.dp_shard = candidate.dp % 2 == 0 ? pick({1, 2, candidate.dp / 2}) : 1;
  candidate.zero = candidate.dp_shard > 1 ? 3 : 0;
  Plan plan;
  plan.engine = dealt.request.engine;
  plan.cluster = dealt.request.cluster;
  RolePlan role;
  role.role = Role::actor;
  role.layout = layout_of(candidate, 24);
  role.ranks = ranks_from(0, candidate.gpus);
  role.rank_order = dealt_order(candidate, dealt.request.traits);
  plan.roles.push_back(role);
  dealt.map = rank_map_of(plan, Role::actor);
  dealt.candidate = candidate;
  return dealt;
}

std::string told(const Dealt& dealt) {
  const Candidate& c = dealt.candidate;
  const ClusterSpec& cluster = dealt.request.cluster;
  return "tp" + std::to_string(c.tp) + " cp" + std::to_string(c.cp) + " pp" + std::to_string(c.pp) +
         " dp" + std::to_string(c.dp) + " shards " + std::to_string(c.dp_shard) + ", " +
         std::to_string(cluster.nodes_per_leaf) + " nodes a leaf, " +
         std::to_string(cluster.oversubscription) + ":1, " + dealt.request.engine;
}

// Random layouts on random clusters. Groups of which some touch more nodes than others are told by
// the widest, with uplinks or without, and are left out.
TEST(LeafGroups, TakeAsLongAsFlowsThatShareTheUplinks) {
  const Calibration calibration = arithmetic_only();
  std::mt19937 random(7);
  const Traffic bytes{1e9};
  int compared = 0, charged = 0;
  for (int trial = 0; trial < 800; ++trial) {
    const Dealt dealt = draw(random);
    const ClusterSpec& cluster = dealt.request.cluster;
    const CandidateGroups groups = groups_of(dealt.candidate, dealt.request);
    ClusterSpec flat = cluster;
    flat.oversubscription = 1;
    const ClusterNetwork network = cluster_network(cluster, calibration, 192);
    const ClusterNetwork plain = cluster_network(flat, calibration, 192);
    for (const Kind& kind : kKinds) {
      const GroupShape& shape = groups.*kind.group;
      if (shape.nodes < 2 || shape.ranks % shape.nodes != 0) continue;
      for (const Collective collective : {Collective::all_gather, Collective::all_to_all}) {
        const Traffic card = member_bytes(collective, bytes, shape).card;
        const double alone = (card / cluster.nic).value;
        if (flowed(dealt.map, kind, collective, bytes, shape, plain) > 1.01 * alone) continue;
        const double closed =
            (card / inter_node_bandwidth(collective, shape, cluster, calibration)).value;
        const double flows = flowed(dealt.map, kind, collective, bytes, shape, network);
        EXPECT_NEAR(closed, flows, 0.05 * flows)
            << kind.name << " of " << told(dealt) << ", " << name_of(collective);
        ++compared;
        charged += closed > 1.01 * alone ? 1 : 0;
      }
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(charged, 200);
}

// Whole steps: what stays below a leaf switch costs no more than on a network without
// oversubscription, in plans as in simulations.
TEST(LeafGroups, StepsOfPlansAreThoseOfSimulations) {
  Problems problems;
  double least_share = 1;
  for (const auto& [nodes_per_leaf, oversubscription] :
       {std::pair{2, 7.0}, {4, 3.0}, {4, 7.0}, {8, 7.0}}) {
    PlanRequest request = request_of(read_model_spec("qwen2.5-72b", problems).value(),
                                     read_workload("ppo-7b-1k", problems).value(),
                                     read_cluster_spec("h100-64", problems).value());
    request.cluster.nodes = 16;
    request.cluster.nodes_per_leaf = nodes_per_leaf;
    request.cluster.oversubscription = oversubscription;
    request.calibration = calibration_for_cluster(request.cluster, problems).value();
    const Plan plan = planned(request);
    const double said = plan.prediction.step_s.value;
    const double simulated = simulate(plan, request.calibration).step_s;
    EXPECT_NEAR(simulated, said, 0.05 * said)
        << nodes_per_leaf << " nodes a leaf, " << oversubscription << ":1";
    request.cluster.nodes_per_leaf = 1;
    least_share = std::min(least_share, said / planned(request).prediction.step_s.value);
  }
  EXPECT_LT(least_share, 0.95);
}

}  // namespace
}  // namespace tessera
