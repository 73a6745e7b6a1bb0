// Tasks whose groups share links within a node: the closed form where all groups send alike, half
// of it where half of them do, and a run that works all rates out anew where roles meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "simulator/engine/simulate.h"
#include "tests/simulator/network/refilled_ends.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

/// A node of eight GPUs behind two switches, one a socket, whose link is so slow that what crosses
/// it decides.
Plan plan_on(Dataflow calls) {
  Plan plan = plan_of_calls(std::move(calls));
  plan.models.at("actor").spec.moe =
      MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 64};
  plan.models.at("actor").spec.query_heads = plan.models.at("actor").spec.kv_heads = 8;
  plan.cluster.intra_per_gpu = gb_per_s(0.032);
  plan.cluster.pcie_switch = {4, gb_per_s(0.032)};
  plan.cluster.socket = {4, gb_per_s(0.01)};
  return plan;
}

Calibration ports() {
  Calibration calibration = arithmetic_only();
  for (CollectiveConstants& curve : calibration.collectives) {
    curve.bandwidth = BytesPerSecond{0.02e9};
  }
  return calibration;
}

Dataflow update() { return {{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}}; }

struct Groups {
  int tp = 1, cp = 1, ep = 1;
  bool ulysses = false;
};

RolePlan role_on(const Plan& plan, Role role, std::vector<int> ranks, Groups degrees) {
  const int block = degrees.tp * degrees.cp;
  RolePlan made = hand_role(plan, role, 0, block, 1, static_cast<int>(ranks.size()) / block, 24);
  made.layout.tp = degrees.tp;
  made.layout.cp = degrees.cp;
  made.layout.ep = degrees.ep;
  made.layout.ulysses = degrees.ulysses;
  made.ranks = std::move(ranks);
  return made;
}

const std::vector<int> kAll{0, 1, 2, 3, 4, 5, 6, 7};

TEST(WithinFlows, AreTheClosedFormWhereAllGpusSendAlike) {
  for (const Groups degrees : {Groups{.ep = 8}, {.tp = 8}, {.tp = 2}, {.cp = 8, .ulysses = true}}) {
    Plan plan = plan_on(update());
    plan.roles = {role_on(plan, Role::actor, kAll, degrees)};
    const IterationTasks tasks = build_iteration(plan, ports());
    ASSERT_TRUE(tasks.shares_links);
    const std::vector<TaskRun> closed = run(tasks.graph), flows = run(tasks).runs;
    int compared = 0;
    for (std::size_t id = 0; id < closed.size(); ++id) {
      const Task& task = tasks.graph.tasks[id];
      if (task.flow_ns == 0) continue;
      EXPECT_GT(task.shared_bytes, 0);
      ++compared;
      const auto took = static_cast<double>(flows[id].end_ns - flows[id].start_ns);
      EXPECT_NEAR(took, static_cast<double>(task.duration_ns), 3 + 1e-6 * took)
          << degrees.tp << " " << degrees.cp << " " << degrees.ep << ", " << task.name;
    }
    EXPECT_GT(compared, 0);
  }
}

// Groups of two kinds send in turn in the closed form, and at once in the one flow of a pass.
TEST(WithinFlows, OfSeveralKindsAreNoLongerThanTheClosedForm) {
  Plan plan = plan_on(update());
  plan.roles = {role_on(plan, Role::actor, kAll, {.tp = 2, .ep = 8})};
  const IterationTasks tasks = build_iteration(plan, ports());
  const std::vector<TaskRun> flows = run(tasks).runs;
  double shared = 0;
  for (std::size_t id = 0; id < flows.size(); ++id) {
    const Task& task = tasks.graph.tasks[id];
    shared += task.shared_bytes;
    EXPECT_LE(flows[id].end_ns - flows[id].start_ns, task.duration_ns + 3) << task.name;
  }
  EXPECT_GT(shared, 0);
}

TEST(WithinFlows, OfOneGroupOfFourHaveTheSocketsLinkToThemselves) {
  Plan plan = plan_on(update());
  plan.roles = {role_on(plan, Role::actor, {0, 4}, {.tp = 2})};
  const IterationTasks tasks = build_iteration(plan, ports());
  const std::vector<TaskRun> closed = run(tasks.graph), flows = run(tasks).runs;
  int compared = 0;
  for (std::size_t id = 0; id < closed.size(); ++id) {
    const Task& task = tasks.graph.tasks[id];
    if (task.flow_ns == 0) continue;
    ++compared;
    EXPECT_NEAR(static_cast<double>(flows[id].end_ns - flows[id].start_ns),
                static_cast<double>(task.duration_ns) - 0.75 * static_cast<double>(task.flow_ns),
                3);
  }
  EXPECT_GT(compared, 0);
  const Simulation simulation = simulate(plan, ports());
  EXPECT_LT(simulation.step_s, simulation.shared.equal_step_s);
}

TEST(WithinFlows, ShareLinksWithAllElseAsProgressiveFillingSays) {
  for (const double socket : {0.01, 0.03}) {
    Plan plan = plan_on({{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}},
                         {Phase::update_critic, Role::critic, CallKind::train, {"prompts"}, {}}});
    plan.cluster.socket.rate = gb_per_s(socket);
    plan.workload.response_tokens = {4, 0.5, 9};
    plan.roles = {role_on(plan, Role::actor, {0, 1, 2, 4, 5, 6}, {.ep = 2}),
                  role_on(plan, Role::critic, {3, 7}, {.tp = 2})};
    const IterationTasks tasks = build_iteration(plan, ports());
    const NetworkRun flows = run(tasks);
    const std::vector<double> wanted = refilled_ends(tasks.graph, tasks.network.flow_capacity());
    ASSERT_GT(flows.flows.size(), 20U);
    for (std::size_t id = 0; id < wanted.size(); ++id) {
      EXPECT_NEAR(static_cast<double>(flows.runs[id].end_ns) * 1e-9, wanted[id],
                  1e-9 * static_cast<double>(wanted.size()))
          << tasks.graph.tasks[id].name;
    }
  }
}

/// Bytes that leave a link's GPUs in the phase, over all links of a kind.
double bytes_out(const Simulation& simulation, LinkKind kind) {
  double bytes = 0;
  for (const LinkLoad& link : simulation.links) {
    if (link.kind == kind && link.name.ends_with("out")) bytes += static_cast<double>(link.bytes);
    EXPECT_LE(link.mean_load, 1 + 1e-9) << link.name;
  }
  return bytes;
}

// A ring of eight crosses each socket once where each of its eight ports carries as much.
TEST(WithinFlows, LoadSocketsWithWhatCrossesThem) {
  Plan plan = plan_on(update());
  plan.roles = {role_on(plan, Role::actor, kAll, {.tp = 8})};
  const Simulation simulation = simulate(plan, ports());
  const double ports_out = bytes_out(simulation, LinkKind::port);
  EXPECT_GT(ports_out, 0);
  EXPECT_NEAR(bytes_out(simulation, LinkKind::socket), ports_out / 4, 0.02 * ports_out);
  EXPECT_NEAR(bytes_out(simulation, LinkKind::pcie_switch), ports_out / 4, 0.02 * ports_out);
}

}  // namespace
}  // namespace tessera
