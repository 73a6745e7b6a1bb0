// Tasks that share links: small cases by hand, the closed form where no link is shared, bytes that
// are neither lost nor made, and loads that no link exceeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/explain/planner.h"
#include "planner/request/settings.h"
#include "simulator/engine/communication.h"
#include "simulator/engine/link_loads.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/network/llama_plans.h"

namespace tessera {
namespace {

Task sends(int rank, double bytes, std::int64_t duration_ns, std::int64_t flow_ns) {
  Task task{.stream = Stream::communication, .ranks = {rank}, .duration_ns = duration_ns};
  task.exchange = Exchange::gradients;
  task.pattern = 0;
  task.card_bytes = bytes;
  task.flow_ns = flow_ns;
  return task;
}

TEST(NetworkRun, TwoTasksOverOneLinkHalveItWhileBothSend) {
  TaskGraph graph;
  graph.patterns.push_back({.links = {0}, .weights = {1}});
  graph.add(sends(0, 10, 2'000'000'000, 2'000'000'000));
  graph.add(sends(1, 30, 7'000'000'000, 6'000'000'000));  // after a second of something else
  graph.add({.ranks = {0}, .duration_ns = 500'000'000, .after = {0}});
  const std::vector<double> capacity{10};
  const NetworkRun shared = run(graph, capacity);
  // The first alone for a second: all its bytes. The second has the link to itself from then on.
  EXPECT_EQ(shared.runs[0].end_ns, 1'000'000'000);
  EXPECT_EQ(shared.runs[1].end_ns, 4'000'000'000);
  EXPECT_EQ(shared.shared_s, 0);

  graph.tasks[0].card_bytes = 20;
  const NetworkRun longer = run(graph, capacity);
  // 10 bytes alone, then 5 bytes per second each for 2 s; the rest of the second is 20 bytes.
  EXPECT_EQ(longer.runs[0].end_ns, 3'000'000'000);
  EXPECT_EQ(longer.runs[1].end_ns, 5'000'000'000);
  EXPECT_EQ(longer.runs[2].start_ns, 3'000'000'000);
  EXPECT_EQ(longer.runs[2].slack_ns, 1'500'000'000);
  EXPECT_NEAR(longer.shared_s, 1 + 1, 1e-9);
  EXPECT_EQ(longer.alone_end_ns, 4'000'000'000);
}

TEST(NetworkRun, AWeightSaysHowManyRanksSendOverTheLink) {
  TaskGraph graph;
  graph.patterns.push_back({.links = {0}, .weights = {3}});  // three ranks of a node
  graph.patterns.push_back({.links = {0}, .weights = {1}});
  graph.add(sends(0, 10, 4'000'000'000, 4'000'000'000));
  graph.add(sends(1, 10, 4'000'000'000, 4'000'000'000));
  graph.tasks[1].pattern = 1;
  const NetworkRun shared = run(graph, std::vector<double>{10});
  // Four ranks have 2.5 bytes per second each.
  EXPECT_EQ(shared.runs[0].end_ns, 4'000'000'000);
  EXPECT_EQ(shared.runs[1].end_ns, 4'000'000'000);
  EXPECT_EQ(shared.alone_end_ns, 3'000'000'000);
}

const std::vector<std::vector<std::string>>& layouts() {
  static const std::vector<std::vector<std::string>> all{
      {"placement=colocated", "actor.tp=4", "actor.pp=2"},
      {"placement=colocated", "actor.tp=2", "actor.pp=4", "actor.zero=1"},
      {"placement=colocated", "actor.zero=3", "actor.tp=1", "actor.pp=1"},
      {"placement=colocated", "actor.zero=2", "actor.tp=8", "actor.pp=1"},
      {"placement=standalone"}};
  return all;
}

TEST(NetworkRun, IsTheRunByDurationsWhereEveryGpuHasItsCard) {
  int flows = 0;
  for (const auto& fixed : layouts()) {
    const Plan plan = planned(8, 1, fixed);
    const IterationTasks tasks = build_iteration(plan, constants());
    EXPECT_FALSE(tasks.shares_links);
    const std::vector<TaskRun> closed = run(tasks.graph);
    const NetworkRun shared = run(tasks.graph, tasks.network.capacity);
    for (const Task& task : tasks.graph.tasks) flows += task.flow_ns > 0 ? 1 : 0;
    for (std::size_t id = 0; id < closed.size(); ++id) {
      const auto took = [](const TaskRun& one) { return one.end_ns - one.start_ns; };
      ASSERT_NEAR(took(shared.runs[id]), took(closed[id]), 2) << tasks.graph.tasks[id].name;
    }
    EXPECT_NEAR(static_cast<double>(end_of(shared.runs)), static_cast<double>(end_of(closed)),
                1e-6 * static_cast<double>(end_of(closed)));
    EXPECT_LT(shared.shared_s, 1e-4);
  }
  EXPECT_GT(flows, 40);
}

TEST(NetworkRun, IsNoSlowerThanEqualSharesAndNoFasterThanEachAlone) {
  for (const auto& fixed : layouts()) {
    for (const auto& [cards, oversubscription] : {std::pair{2, 1.0}, {8, 4.0}}) {
      const Plan plan = planned(cards, oversubscription, fixed);
      const Simulation simulation = simulate(plan, constants());
      ASSERT_TRUE(simulation.shared.any);
      EXPECT_LE(simulation.step_s, simulation.shared.equal_step_s * (1 + 1e-6));
      EXPECT_GE(simulation.shared.step_s, 0);
      EXPECT_GE(simulation.shared.waited_s, 0);
    }
  }
}

TEST(NetworkRun, ALostCardSlowsWhatCrossesItsNode) {
  const Plan plan =
      planned(8, 1, {"placement=colocated", "actor.tp=8", "actor.pp=1", "actor.zero=0"});
  SimulationOptions hurt;
  hurt.machine.lost_card_of = {2, 2, 2, 2};
  const Simulation whole = simulate(plan, constants()), lost = simulate(plan, constants(), hurt);
  const auto gradients = [](const Simulation& simulation) {
    double most = 0;
    for (const CommunicationPart& part : simulation.communication) {
      if (part.exchange == Exchange::gradients) most = std::max(most, part.seconds);
    }
    return most;
  };
  // Four cards for eight GPUs: half the rate, on the whole ring.
  EXPECT_GT(gradients(whole), 0);
  EXPECT_NEAR(gradients(lost) / gradients(whole), 2, 0.05);
  EXPECT_GT(lost.step_s, whole.step_s);
}

TEST(NetworkRun, ASlowRankHoldsItsGroupUp) {
  const Plan plan = planned(8, 1, {"placement=colocated", "actor.tp=4", "actor.pp=1"});
  SimulationOptions slow;
  slow.machine.slow_ranks[5] = 1.5;
  const Simulation whole = simulate(plan, constants()), held = simulate(plan, constants(), slow);
  EXPECT_NEAR(held.phases_s.at(Phase::old_log_prob) / whole.phases_s.at(Phase::old_log_prob), 1.5,
              0.1);
  EXPECT_GT(held.ranks[20].idle_share, whole.ranks[20].idle_share + 0.1);
}

TEST(LinkLoad, CountsEveryByteAndNoMoreThanALinkCarries) {
  for (const auto& fixed : layouts()) {
    for (const auto& [cards, oversubscription] : {std::pair{2, 1.0}, {8, 4.0}, {8, 1.0}}) {
      const Plan plan = planned(cards, oversubscription, fixed);
      const Simulation simulation = simulate(plan, constants());
      std::map<std::pair<LinkKind, bool>, std::int64_t> sums;  // bytes by kind, out and in
      const double window = static_cast<double>(simulation.load_window_ns) * 1e-9;
      for (const LinkLoad& link : simulation.links) {
        sums[{link.kind, link.name.ends_with(", in")}] += link.bytes;
        double carried = 0;
        for (const float load : link.load) {
          carried += static_cast<double>(load) * link.bytes_per_s * window;
          if (link.kind == LinkKind::port) continue;  // what copies reach is no part of the sheet
          EXPECT_LE(load, 1 + 1e-5) << link.name;
        }
        EXPECT_NEAR(carried, static_cast<double>(link.bytes), 1e-5 * carried) << link.name;
        EXPECT_GT(link.busy_share, 0);
        EXPECT_LE(link.busy_share, 1);
      }
      for (const LinkKind kind : {LinkKind::card, LinkKind::uplink, LinkKind::port}) {
        const auto sent = sums[{kind, false}], arrived = sums[{kind, true}];
        EXPECT_NEAR(static_cast<double>(sent), static_cast<double>(arrived), 1e3);
      }
    }
  }
}

/// A node's gradients are reduced beside the backward pass, whose task is what shows of them.
TEST(LinkLoad, OfWhatABackwardPassHidesFitsTheLink) {
  const Plan plan = planned(8, 1, {"actor.tp=1", "actor.pp=1", "actor.zero=1", "actor.dp=8"},
                            cluster_of(8, 1, 141));
  const Simulation simulation = simulate(plan, constants());
  ASSERT_FALSE(simulation.links.empty());
  for (const LinkLoad& link : simulation.links) {
    EXPECT_LE(link.mean_load, link.busy_share + 1e-6) << link.name;
    EXPECT_LE(link.most_load, 1 + 1e-5) << link.name;
  }
}

/// The uses of a link against the tasks themselves: bytes by phase and exchange, and when.
TEST(LinkLoad, TellsWhichCallsCrossALinkAndWhen) {
  for (const auto& fixed : layouts()) {
    const Plan plan = planned(8, 1, fixed);
    const IterationTasks tasks = build_iteration(plan, constants());
    const NetworkRun shared = run(tasks);
    const std::int64_t end_ns = end_of(shared.runs);
    constexpr int kWindows = 64;
    for (const LinkLoad& link : link_loads(tasks, shared, end_ns, kWindows)) {
      std::vector<double> load(kWindows);
      std::int64_t bytes = 0;
      for (const LinkUse& use : link.uses) {
        ASSERT_FALSE(use.load.empty()) << link.name;
        EXPECT_GT(use.load.back(), 0) << link.name;
        bytes += use.bytes;
        std::int64_t first_ns = end_ns, last_ns = 0;  // of the tasks that cross it
        for (std::size_t id = 0; id < tasks.graph.tasks.size(); ++id) {
          const Task& task = tasks.graph.tasks[id];
          if (task.phase != use.phase || task.exchange != use.exchange || task.pattern < 0)
            continue;
          first_ns = std::min(first_ns, shared.runs[id].start_ns);
          last_ns = std::max(last_ns, shared.runs[id].end_ns);
        }
        for (const HiddenExchange& hidden : tasks.hidden) {
          const auto behind = static_cast<std::size_t>(hidden.behind_pass);
          if (tasks.graph.tasks[behind].phase != use.phase || hidden.exchange != use.exchange)
            continue;
          first_ns = std::min(first_ns, shared.runs[behind].start_ns - hidden.beside_ns);
        }
        const double window = static_cast<double>(end_ns) / kWindows;
        // Copies are quicker than a port's sheet: they have begun before.
        const double copied_ns = 1e9 * static_cast<double>(use.bytes) / link.bytes_per_s;
        EXPECT_GE((use.first_window + 1) * window, static_cast<double>(first_ns) - copied_ns - 1)
            << link.name;
        const auto windows =
            static_cast<double>(use.first_window) + static_cast<double>(use.load.size());
        EXPECT_LE((windows - 1) * window, static_cast<double>(last_ns) + 1) << link.name;
        for (std::size_t i = 0; i < use.load.size(); ++i) {
          load[static_cast<std::size_t>(use.first_window) + i] += static_cast<double>(use.load[i]);
        }
      }
      EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(link.bytes), 4) << link.name;
      double most = 0, sum = 0;
      for (std::size_t w = 0; w < kWindows; ++w) {
        EXPECT_NEAR(load[w], link.load[w], 1e-5) << link.name << " " << w;
        most = std::max(most, static_cast<double>(link.load[w]));
        sum += static_cast<double>(link.load[w]);
      }
      EXPECT_EQ(link.most_load, most) << link.name;
      EXPECT_NEAR(link.mean_load, sum / kWindows, 1e-5) << link.name;
      EXPECT_FALSE(link.ranks.empty()) << link.name;
    }
  }
}

TEST(LinkLoad, OfAGradientsRingIsItsShareOfTheBuffer) {
  const Plan plan = planned(
      8, 1,
      {"placement=colocated", "actor.tp=8", "actor.pp=1", "actor.zero=0", "actor.recompute=none"});
  const RolePlan& actor = *plan.find(Role::actor);
  const IterationTasks tasks = build_iteration(plan, constants());
  std::int64_t reductions = 0, buffer = 0;
  for (const Task& task : tasks.graph.tasks) {
    if (task.exchange != Exchange::gradients) continue;
    ++reductions;
    buffer = task.bytes;
    // All-reduce over one GPU of each of four nodes: 2 x 3/4 of the buffer leave each card.
    EXPECT_NEAR(task.card_bytes, 1.5 * static_cast<double>(buffer), 64);
    EXPECT_EQ(task.port_bytes, 0);
  }
  ASSERT_EQ(actor.layout.dp, 4);
  ASSERT_GT(reductions, 0);
  const NetworkRun shared = run(tasks);
  double least = 0;
  for (const LinkLoad& link : link_loads(tasks, shared, end_of(shared.runs), 16)) {
    if (link.kind == LinkKind::card) least = static_cast<double>(link.bytes);
  }
  EXPECT_GE(least, 1.49 * static_cast<double>(reductions * buffer));
}

/// With sequence parallelism a layer gathers and scatters what goes into its attention and its MLP,
/// the embedding scatters once: (tp - 1) / tp of the hidden states each (Korthikanti et al. 2022,
/// arXiv:2205.05198, section 4.2.2).
TEST(LinkLoad, OfTensorParallelismIsWhatItsLayersGatherAndScatter) {
  const Plan plan =
      planned(8, 1, {"placement=colocated", "actor.tp=8", "actor.pp=2", "actor.vpp=1"});
  PlanCosts costs(plan, constants());
  const RoleCosts& actor = costs.of(Role::actor);
  ASSERT_TRUE(actor.role().layout.sequence_parallel);
  constexpr double kTokens = 4096;
  const auto passes = actor.operations().forward({kTokens, 4, kTokens * 1024}, 2048, 1);
  ASSERT_EQ(passes.size(), 2U);
  const double hidden = static_cast<double>(plan.model_of(Role::actor).hidden);
  const double moved = 7.0 / 8 * kTokens * hidden * 2;  // of bf16
  const auto layers = static_cast<double>(passes[0].layers);
  EXPECT_NEAR(passes[0].within.value, (4 * layers + 1) * moved, 1e-4 * moved);
  // All of it crosses the ports of the ranks, in every call of the actor.
  const IterationTasks tasks = build_iteration(plan, constants());
  std::map<Phase, double> of_rank;
  for (const Task& task : tasks.graph.tasks) {
    const bool own = std::find(task.ranks.begin(), task.ranks.end(), 0) != task.ranks.end();
    if (task.exchange == Exchange::none && own) of_rank[task.phase] += task.port_bytes;
  }
  const NetworkRun shared = run(tasks);
  const auto loads = link_loads(tasks, shared, end_of(shared.runs), 16);
  const auto port = std::find_if(loads.begin(), loads.end(), [](const LinkLoad& link) {
    return link.kind == LinkKind::port && link.ranks == std::vector{0};
  });
  ASSERT_NE(port, loads.end());
  for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
    EXPECT_GT(of_rank.at(phase), layers * moved);
    for (const LinkUse& use : port->uses) {
      if (use.phase != phase || use.exchange != Exchange::none) continue;
      EXPECT_NEAR(static_cast<double>(use.bytes), of_rank.at(phase), 1e-6 * of_rank.at(phase));
      of_rank.at(phase) = 0;
    }
    EXPECT_EQ(of_rank.at(phase), 0) << name_of(phase);
  }
}

TEST(Communication, IsExposedOrHiddenAndAddsUpToItsTasks) {
  for (const auto& fixed : layouts()) {
    const Plan plan = planned(8, 1, fixed);
    const IterationTasks tasks = build_iteration(plan, constants());
    const std::vector<TaskRun> runs = run(tasks).runs;
    const auto parts = communication_parts(tasks, runs, static_cast<int>(plan.world_size()));
    ASSERT_FALSE(parts.empty());
    for (const CommunicationPart& part : parts) {
      // Counted by brute force, nanoseconds of pairs of tasks.
      std::int64_t took = 0, hidden = 0;
      for (std::size_t id = 0; id < runs.size(); ++id) {
        const Task& task = tasks.graph.tasks[id];
        const auto on = [&](const Task& one) {
          return std::find(one.ranks.begin(), one.ranks.end(), part.rank) != one.ranks.end();
        };
        if (task.exchange != part.exchange || task.phase != part.phase || !on(task)) continue;
        if (task.stream == Stream::compute) {
          took += task.communication_ns + runs[id].end_ns - runs[id].start_ns - task.duration_ns;
          continue;
        }
        if (task.pattern >= 0 && part.group_ranks > 0) {
          const auto& pattern = tasks.graph.patterns[static_cast<std::size_t>(task.pattern)];
          if (pattern.group_ranks != part.group_ranks || pattern.group_nodes != part.group_nodes) {
            continue;
          }
        }
        took += runs[id].end_ns - runs[id].start_ns;
        for (std::size_t other = 0; other < runs.size(); ++other) {
          const Task& computing = tasks.graph.tasks[other];
          if (computing.stream != Stream::compute || !on(computing)) continue;
          hidden +=
              std::max<std::int64_t>(0, std::min(runs[id].end_ns, runs[other].end_ns) -
                                            std::max(runs[id].start_ns, runs[other].start_ns));
        }
      }
      for (const HiddenExchange& one : tasks.hidden) {
        const Task& behind = tasks.graph.tasks[static_cast<std::size_t>(one.behind_pass)];
        const bool on = std::find(one.ranks.begin(), one.ranks.end(), part.rank) != one.ranks.end();
        if (!on || one.exchange != part.exchange || behind.phase != part.phase) continue;
        took += one.hidden_ns;
        hidden += one.hidden_ns;
      }
      EXPECT_NEAR(part.seconds, static_cast<double>(took) * 1e-9, 1e-9);
      EXPECT_NEAR(part.exposed_s, static_cast<double>(took - hidden) * 1e-9, 1e-9);
    }
  }
}

}  // namespace
}  // namespace tessera
