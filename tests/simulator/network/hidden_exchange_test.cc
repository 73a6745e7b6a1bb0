// What a backward pass hides of reductions and gathers: by hand.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "simulator/engine/communication.h"
#include "simulator/engine/link_loads.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/network/llama_plans.h"

namespace tessera {
namespace {

const LinkLoad& port_out_of(const std::vector<LinkLoad>& links, int rank) {
  static const LinkLoad none;
  for (const LinkLoad& link : links) {
    const bool out = link.name.ends_with(", out");
    if (link.kind == LinkKind::port && out && link.ranks == std::vector{rank}) return link;
  }
  return none;
}

/// A pass of 10 s on two ranks, and a second of a reduction behind it of which the pass hides
/// three.
IterationTasks pass_and_reduction(double within_the_pass) {
  const Plan plan = planned(8, 1, {"placement=colocated"}, cluster_of(8, 1, 141));
  IterationTasks tasks;
  tasks.network = build_iteration(plan, constants()).network;
  tasks.graph.patterns.push_back({.links = {}, .weights = {}, .out = {0}, .in = {1}});
  Task pass{.ranks = {0, 1}, .duration_ns = 10'000'000'000};
  pass.pattern = 0;
  pass.port_bytes = within_the_pass;
  const TaskId before = tasks.graph.add(pass);
  Task shown{.stream = Stream::communication,
             .ranks = {0, 1},
             .duration_ns = 1'000'000'000,
             .after = {before},
             .exchange = Exchange::gradients,
             .pattern = 0,
             .port_bytes = 1e9};
  const TaskId reduction = tasks.graph.add(shown);
  tasks.hidden.push_back({.shown = reduction,
                          .behind_pass = reduction,
                          .hidden_ns = 3'000'000'000,
                          .beside_ns = 4'000'000'000,
                          .ranks = {0, 1},
                          .exchange = Exchange::gradients,
                          .pattern = 0,
                          .port_bytes = 3e9});
  return tasks;
}

TEST(HiddenExchange, TravelsBesideTheEndOfThePass) {
  const IterationTasks tasks = pass_and_reduction(0);
  const NetworkRun done = run(tasks);
  ASSERT_EQ(end_of(done.runs), 11'000'000'000);
  const LinkLoad port = port_out_of(link_loads(tasks, done, end_of(done.runs), 11), 0);
  ASSERT_EQ(port.load.size(), 11U);
  for (int second = 0; second < 11; ++second) {
    const double bytes = second < 6 ? 0 : second < 10 ? 0.75e9 : 1e9;
    EXPECT_NEAR(static_cast<double>(port.load[static_cast<std::size_t>(second)]),
                bytes / port.bytes_per_s, 1e-6)
        << second;
  }
  EXPECT_EQ(port.bytes, 4'000'000'000);
  EXPECT_NEAR(port.busy_share, 5.0 / 11, 1e-9);
  for (const CommunicationPart& part : communication_parts(tasks, done.runs, 2)) {
    if (part.exchange != Exchange::gradients) continue;
    EXPECT_NEAR(part.seconds, 4, 1e-9);
    EXPECT_NEAR(part.exposed_s, 1, 1e-9);
    EXPECT_EQ(part.port_bytes, 4e9);
    EXPECT_EQ(part.tasks, 1);
  }
}

// The layers of the pass leave the port a thousandth of what it carries.
TEST(HiddenExchange, TakesLongerWhereLayersLeaveItNoRoom) {
  const double rate = pass_and_reduction(0).network.port_rate;
  const IterationTasks tasks = pass_and_reduction(10 * 0.999 * rate);
  const NetworkRun done = run(tasks);
  const LinkLoad port = port_out_of(link_loads(tasks, done, end_of(done.runs), 11), 0);
  ASSERT_EQ(port.load.size(), 11U);
  double carried = 0;
  for (const float load : port.load) {
    EXPECT_LE(load, 1 + 1e-6);
    carried += static_cast<double>(load) * port.bytes_per_s;
  }
  EXPECT_NEAR(carried, 9.99 * rate + 4e9, 1e-6 * carried);
  EXPECT_NEAR(port.load[9], 1, 1e-6);
}

/// ZeRO-1 over eight ranks: a ring takes 7/8 of every gradient into each rank and 7/8 of every
/// parameter out of it (Rajbhandari et al. 2020, section 7), in both of a step's mini-batches. A
/// Llama 3.1 8B has 8,030,261,248 of them.
TEST(HiddenExchange, HasTheBytesOfTheWholeRing) {
  const Plan plan = planned(8, 1, {"actor.tp=1", "actor.pp=1", "actor.zero=1", "actor.dp=8"},
                            cluster_of(8, 1, 141));
  const Simulation simulation = simulate(plan, constants());
  const RolePlan& actor = *plan.find(Role::actor);
  const LinkLoad port = port_out_of(simulation.links, 3);
  std::map<Exchange, double> bytes;
  for (const LinkUse& use : port.uses) bytes[use.exchange] += static_cast<double>(use.bytes);
  const double each = 2 * 7.0 / 8 * 8'030'261'248.0;
  const auto of_type = [&](DType type) { return each * static_cast<double>(size_of(type)); };
  EXPECT_NEAR(bytes[Exchange::gradients], of_type(actor.dtypes.grad), 1e-3 * each);
  EXPECT_NEAR(bytes[Exchange::parameters], of_type(actor.dtypes.param), 1e-3 * each);
  PlanCosts costs(plan, constants());
  for (const CommunicationPart& part : simulation.communication) {
    if (part.exchange != Exchange::gradients) continue;
    EXPECT_NEAR(part.seconds, 2 * costs.of(Role::actor).reduce_seconds(0), 1e-6);
    EXPECT_LT(part.exposed_s, 0.5 * part.seconds) << "the most of it is hidden";
    EXPECT_NEAR(part.port_bytes, bytes[Exchange::gradients], 1e-3 * each);
  }
}

}  // namespace
}  // namespace tessera
