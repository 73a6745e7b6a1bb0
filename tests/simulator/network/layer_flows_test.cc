// What layers send between nodes as flows: bytes by hand, the closed form where no link is shared
// or all GPUs send alike, and where they do not a run that works all rates out anew at each change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "planner/engines/engine.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/network/refilled_ends.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

/// Two nodes of four GPUs; cards are so slow that layers take most of their time to send.
Plan plan_on(std::int64_t cards, Dataflow calls) {
  Plan plan = plan_of_calls(std::move(calls));
  plan.models.at("actor").spec.moe =
      MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 64};
  plan.cluster = cluster_of(4, 2, 80);
  plan.cluster.nics_per_node = cards;
  plan.cluster.nic = gb_per_s(0.01);
  return plan;
}

Dataflow update() { return {{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}}; }

struct Degrees3 {
  int tp = 1, cp = 1, ep = 1;
};

RolePlan role_on(const Plan& plan, Role role, std::vector<int> ranks, Degrees3 degrees) {
  const int model = degrees.tp * degrees.cp;
  RolePlan made = hand_role(plan, role, 0, model, 1, static_cast<int>(ranks.size()) / model, 24);
  made.layout.tp = degrees.tp;
  made.layout.cp = degrees.cp;
  made.layout.ep = degrees.ep;
  made.ranks = std::move(ranks);
  return made;
}

const std::vector<int> kAll{0, 1, 2, 3, 4, 5, 6, 7};

TEST(LayerFlows, CarryTheBytesOfAllLayersOfAPass) {
  Plan plan = plan_on(4, update());
  plan.roles = {role_on(plan, Role::actor, kAll, {.ep = 8})};
  const IterationTasks tasks = build_iteration(plan, arithmetic_only());
  const ExpertTraits experts = traits_of(plan.engine).experts;
  ASSERT_FALSE(experts.merged_dispatch);
  int forward = 0, backward = 0;
  for (const Task& task : tasks.graph.tasks) {
    if (task.flow_ns == 0 || task.stream != Stream::compute) continue;
    const bool back = task.name.starts_with("B");
    (back ? backward : forward) += 1;
    // 24 tokens to 2 experts each of 64 numbers in 2 bytes, to them and back, in 8 layers; half of
    // the experts are on the other node.
    const double bytes = 24 * 2 * 64 * 2 * 2 * 8 * experts.imbalance / 2;
    EXPECT_NEAR(task.card_bytes, bytes, 1e-6 * bytes) << task.name;
    EXPECT_NEAR(static_cast<double>(task.flow_ns), bytes / 0.01, 2) << task.name;
  }
  EXPECT_EQ(forward, 8);  // a pass of each of the 8 replicas: one flow, not one a layer
  EXPECT_EQ(backward, 8);
}

TEST(LayerFlows, AreTheClosedFormWhereNothingIsSharedOrAllSendAlike) {
  for (const Degrees3 degrees : {Degrees3{.ep = 8},
                                 {.ep = 4},
                                 {.tp = 2, .ep = 8},
                                 {.tp = 8},
                                 {.cp = 8},
                                 {.tp = 2, .cp = 4},
                                 {.cp = 8, .ep = 8}}) {
    for (const std::int64_t cards : {4, 2, 1}) {
      for (const bool ulysses : {false, true}) {
        Plan plan = plan_on(cards, update());
        plan.models.at("actor").spec.query_heads = plan.models.at("actor").spec.kv_heads = 8;
        plan.roles = {role_on(plan, Role::actor, kAll, degrees)};
        plan.roles.front().layout.ulysses = ulysses && degrees.cp > 1;
        const IterationTasks tasks = build_iteration(plan, arithmetic_only());
        const std::vector<TaskRun> closed = run(tasks.graph);
        const NetworkRun flows = run(tasks.graph, tasks.network.capacity);
        const bool ring = degrees.cp > 1 && !ulysses;  // a node's last GPU alone sends to the next
        int compared = 0;
        for (std::size_t id = 0; id < closed.size(); ++id) {
          if (tasks.graph.tasks[id].flow_ns == 0) continue;
          ++compared;
          const std::int64_t took = flows.runs[id].end_ns - flows.runs[id].start_ns;
          const std::int64_t wanted = closed[id].end_ns - closed[id].start_ns;
          if (ring && cards < 4) {
            EXPECT_LE(took, wanted + 2);
          } else {
            EXPECT_NEAR(static_cast<double>(took), static_cast<double>(wanted), 2)
                << degrees.tp << " " << degrees.cp << " " << degrees.ep << ", " << cards;
          }
        }
        EXPECT_GT(compared, 0);
      }
    }
  }
}

TEST(LayerFlows, OfHalfOfTheGpusHaveTheCardToThemselves) {
  Plan plan = plan_on(1, update());
  plan.roles = {role_on(plan, Role::actor, {0, 1, 4, 5}, {.ep = 4})};
  const IterationTasks tasks = build_iteration(plan, arithmetic_only());
  const std::vector<TaskRun> closed = run(tasks.graph), flows = run(tasks).runs;
  int halved = 0;
  for (std::size_t id = 0; id < closed.size(); ++id) {
    const Task& task = tasks.graph.tasks[id];
    if (task.flow_ns == 0 || task.stream != Stream::compute) continue;
    EXPECT_NEAR(static_cast<double>(flows[id].end_ns - flows[id].start_ns),
                static_cast<double>(task.duration_ns) - static_cast<double>(task.flow_ns) / 2, 2);
    ++halved;
  }
  EXPECT_GT(halved, 0);
  const Simulation simulation = simulate(plan, arithmetic_only());
  EXPECT_LT(simulation.step_s, 0.8 * simulation.shared.equal_step_s);
  // What communicates is as much shorter.
  EXPECT_LT(simulation.exposed_comm_s(), simulation.step_s);
}

TEST(LayerFlows, ShareLinksWithAllElseAsProgressiveFillingSays) {
  for (const double oversubscription : {1.0, 3.0}) {
    for (const std::int64_t cards : {1, 2}) {
      Plan plan =
          plan_on(cards, {{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}},
                          {Phase::update_critic, Role::critic, CallKind::train, {"prompts"}, {}}});
      plan.cluster.oversubscription = oversubscription;
      plan.workload.response_tokens = {4, 0.5, 9};
      plan.roles = {role_on(plan, Role::actor, {0, 1, 2, 4, 5, 6}, {.ep = 2}),
                    role_on(plan, Role::critic, {3, 7}, {.ep = 2})};
      const IterationTasks tasks = build_iteration(plan, arithmetic_only());
      const NetworkRun flows = run(tasks);
      const std::vector<double> wanted = refilled_ends(tasks.graph, tasks.network.capacity);
      ASSERT_GT(flows.flows.size(), 20U);
      for (std::size_t id = 0; id < wanted.size(); ++id) {
        // Each flow ends at the next whole nanosecond.
        EXPECT_NEAR(static_cast<double>(flows.runs[id].end_ns) * 1e-9, wanted[id],
                    1e-9 * static_cast<double>(wanted.size()))
            << tasks.graph.tasks[id].name;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
