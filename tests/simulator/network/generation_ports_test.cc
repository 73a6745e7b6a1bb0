// What replicas exchange while they generate, on their ranks' ports, counted by hand, token by
// token; and as flows where they span nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "simulator/engine/simulate.h"
#include "simulator/rollout/draw_lengths.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

Plan generating(int tp, int pp, int gpus_per_node) {
  Plan plan = plan_of_calls({{Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {}}});
  plan.models.at("actor").spec.query_heads = plan.models.at("actor").spec.kv_heads = 8;
  plan.cluster = cluster_of(gpus_per_node, 8 / gpus_per_node, 80);
  plan.workload.response_tokens = {4, 0.5, 9};
  plan.roles = {hand_role(plan, Role::rollout, 0, tp, pp, 8 / tp / pp, 24)};
  return plan;
}

double port_bytes(const Simulation& simulation, int rank, bool in) {
  const std::string name = "GPU " + std::to_string(rank) + (in ? ", in" : ", out");
  double bytes = 0;
  for (const LinkLoad& link : simulation.links) {
    if (link.name != name) continue;
    for (const LinkUse& use : link.uses) {
      if (use.phase == Phase::gen) bytes += static_cast<double>(use.bytes);
    }
  }
  return bytes;
}

/// Of a rank on average: two sums of hidden states a layer and one of the embedding, for which it
/// reads what each of the others has; what ranks that have some columns of the logits gather of 8
/// pieces of each for a token that is drawn, 4 and 16 bytes, and add up, 8 bytes; and hidden states
/// to the next stage in each decode step.
double counted(const Plan& plan, int replica) {
  const ParallelLayout& layout = plan.roles.front().layout;
  const ModelSpec& model = plan.models.at("actor").spec;
  const auto lengths = draw_lengths(plan.workload, 0, 0);
  const std::size_t each = lengths.size() / static_cast<std::size_t>(layout.dp);
  double decoded = 0, prompts = 0;
  for (std::size_t i = 0; i < each; ++i) {
    decoded += static_cast<double>(lengths[static_cast<std::size_t>(replica) * each + i] - 1);
  }
  prompts = static_cast<double>(each) / static_cast<double>(plan.workload.samples_per_prompt) *
            static_cast<double>(plan.workload.prompt_tokens);
  const double ring = static_cast<double>(layout.tp - 1) / layout.tp;
  const auto row = static_cast<double>(model.hidden) * 2;  // bf16
  const double sums = (2.0 * static_cast<double>(model.layers) + 1) * (layout.tp - 1) * row;
  const double draw = ring * (8.0 * layout.tp * (4 + 16) + 2 * 8);
  const double all = (decoded + prompts) * sums + (decoded + static_cast<double>(each)) * draw;
  return all / layout.pp + (layout.pp > 1 ? decoded * row : 0);
}

TEST(GenerationPorts, CarryEveryTokensExchangesOnOneNode) {
  for (const auto& [tp, pp] : {std::pair{2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 2}, {1, 4}}) {
    const Plan plan = generating(tp, pp, 8);
    const Simulation simulation = simulate(plan, arithmetic_only());
    for (int rank = 0; rank < 8; ++rank) {
      const double wanted = counted(plan, rank / (tp * pp));
      for (const bool in : {false, true}) {
        EXPECT_NEAR(port_bytes(simulation, rank, in), wanted, 1e-6 * wanted + 1)
            << tp << " " << pp << ", rank " << rank;
      }
    }
  }
}

TEST(GenerationPorts, CarryNothingOfOneRank) {
  EXPECT_EQ(port_bytes(simulate(generating(1, 1, 8), arithmetic_only()), 0, false), 0);
}

/// Of all network cards, one way.
double card_bytes(const Simulation& simulation) {
  double bytes = 0;
  for (const LinkLoad& link : simulation.links) {
    if (link.kind != LinkKind::card || !link.name.ends_with("out")) continue;
    for (const LinkUse& use : link.uses) {
      if (use.phase == Phase::gen) bytes += static_cast<double>(use.bytes);
    }
  }
  return bytes;
}

// Two ranks a node: stages of two ranks hand over between nodes, and sum within one.
TEST(GenerationPorts, ReplicasThatSpanNodesUseTheirCardsToo) {
  const Plan pipelined = generating(2, 2, 2);
  const Simulation simulation = simulate(pipelined, arithmetic_only());
  const auto row = static_cast<double>(pipelined.models.at("actor").spec.hidden) * 2;
  double decoded = 0;
  for (const std::int64_t length : draw_lengths(pipelined.workload, 0, 0)) {
    decoded += static_cast<double>(length - 1);
  }
  // Both ranks of the first stage send every decoded token's hidden states; flows last whole
  // nanoseconds, which are a few here.
  EXPECT_NEAR(card_bytes(simulation), 2 * decoded * row, 0.04 * decoded * row);
  const double within = counted(pipelined, 0) - decoded / 2 * row;
  EXPECT_GT(port_bytes(simulation, 0, false), 0);
  EXPECT_LT(port_bytes(simulation, 0, false), 1.1 * within);
  // Four ranks that sum over two nodes: cards and ports, and none where all are of one node.
  const Simulation summed = simulate(generating(4, 1, 2), arithmetic_only());
  EXPECT_GT(card_bytes(summed), 0);
  EXPECT_GT(port_bytes(summed, 0, false), 0);
  EXPECT_EQ(card_bytes(simulate(generating(4, 1, 8), arithmetic_only())), 0);
}

/// Replicas of four ranks on two nodes of four GPUs, whose card is so slow that it decides.
Plan over_two_nodes(std::vector<int> ranks) {
  Plan plan = generating(4, 1, 4);
  plan.workload.response_tokens = {4, 0, 4};
  plan.cluster.nics_per_node = 1;
  plan.cluster.nic = gb_per_s(0.01);
  plan.roles = {hand_role(plan, Role::rollout, 0, 4, 1, static_cast<int>(ranks.size()) / 4, 24)};
  plan.roles.front().ranks = std::move(ranks);
  return plan;
}

TEST(GenerationFlows, AreTheClosedFormWhereReplicasSendAlikeAndShorterWhereOneIsAlone) {
  const auto compare = [](const Plan& plan, double part) {
    const IterationTasks tasks = build_iteration(plan, arithmetic_only());
    const std::vector<TaskRun> flows = run(tasks).runs;
    int compared = 0;
    for (std::size_t id = 0; id < flows.size(); ++id) {
      const Task& task = tasks.graph.tasks[id];
      if (task.flow_ns == 0) continue;
      ++compared;
      EXPECT_EQ(task.phase, Phase::gen);
      EXPECT_NEAR(static_cast<double>(flows[id].end_ns - flows[id].start_ns),
                  static_cast<double>(task.duration_ns - task.flow_ns) +
                      part * static_cast<double>(task.flow_ns),
                  3);
    }
    EXPECT_GT(compared, 0);
  };
  compare(over_two_nodes({0, 1, 4, 5, 2, 3, 6, 7}), 1);
  compare(over_two_nodes({0, 1, 4, 5}), 0.5);
}

}  // namespace
}  // namespace tessera
