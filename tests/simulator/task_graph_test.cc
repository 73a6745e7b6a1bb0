#include "simulator/tasks/task_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace tessera {
namespace {

Task on(int rank, std::int64_t duration_ns, std::vector<TaskId> after = {}) {
  return {.ranks = {rank}, .duration_ns = duration_ns, .after = std::move(after)};
}

std::int64_t makespan(const std::vector<TaskRun>& runs) {
  std::int64_t end = 0;
  for (const TaskRun& one : runs) end = std::max(end, one.end_ns);
  return end;
}

TEST(TaskGraph, AStreamRunsItsTasksInTheOrderOfTheirIds) {
  TaskGraph graph;
  graph.add(on(0, 5));
  graph.add(on(1, 3));
  graph.add(on(0, 2, {1}));
  graph.add(on(1, 4, {0}));
  const std::vector<TaskRun> runs = run(graph);
  EXPECT_EQ(runs[2].start_ns, 5);
  EXPECT_EQ(runs[3].start_ns, 5);
  EXPECT_EQ(makespan(runs), 9);
}

TEST(TaskGraph, ACollectiveWaitsForItsLastMemberAndOccupiesAll) {
  TaskGraph graph;
  graph.add(on(0, 7));
  graph.add(on(1, 1));
  graph.add({.stream = Stream::compute, .ranks = {0, 1}, .duration_ns = 10});
  graph.add(on(1, 1));
  const std::vector<TaskRun> runs = run(graph);
  EXPECT_EQ(runs[2].start_ns, 7);
  EXPECT_EQ(runs[3].start_ns, 17);
}

TEST(TaskGraph, SlackIsTheDelayThatChangesNothing) {
  TaskGraph graph;
  const TaskId fork = graph.add(on(0, 2));
  const TaskId long_arm = graph.add(on(1, 10, {fork}));
  const TaskId short_arm = graph.add(on(2, 4, {fork}));
  const TaskId join = graph.add(on(0, 1, {long_arm, short_arm}));
  const std::vector<TaskRun> runs = run(graph);
  EXPECT_EQ(runs[long_arm].slack_ns, 0);
  EXPECT_EQ(runs[short_arm].slack_ns, 6);
  const std::vector<TaskId> awaited = awaited_tasks(graph, runs);
  EXPECT_EQ(awaited, (std::vector<TaskId>{-1, fork, fork, long_arm}));
  EXPECT_EQ(critical_path(awaited, runs), (std::vector<TaskId>{fork, long_arm, join}));
}

/// 1F1B with equal stages: makespan (m + p - 1)(t_f + t_b) (Narayanan et al. 2021, 2.2).
TEST(TaskGraph, AnEvenOneForwardOneBackwardPipelineTakesItsClosedForm) {
  const int stages = 4, micro_batches = 6;
  const std::int64_t forward_ns = 3, backward_ns = 6;
  TaskGraph graph;
  std::vector<std::vector<TaskId>> forward(stages, std::vector<TaskId>(micro_batches, -1));
  std::vector<std::vector<TaskId>> backward = forward;
  // Programs by stage: warm-up forwards, then pairs, then the rest of the backwards.
  std::vector<std::vector<std::pair<bool, int>>> programs(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const int warmup = std::min(micro_batches, stages - stage);
    for (int m = 0; m < warmup; ++m) programs[stage].push_back({true, m});
    for (int m = 0; m < micro_batches; ++m) {
      programs[stage].push_back({false, m});
      if (m + warmup < micro_batches) programs[stage].push_back({true, m + warmup});
    }
  }
  std::vector<size_t> next(stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < stages; ++stage) {
      if (next[stage] == programs[stage].size()) continue;
      const auto [is_forward, m] = programs[stage][next[stage]];
      const TaskId needed =
          is_forward ? (stage == 0 ? -2 : forward[stage - 1][m])
                     : (stage == stages - 1 ? forward[stage][m] : backward[stage + 1][m]);
      if (needed == -1) continue;
      const std::vector<TaskId> after =
          needed == -2 ? std::vector<TaskId>{} : std::vector<TaskId>{needed};
      (is_forward ? forward : backward)[stage][m] =
          graph.add(on(stage, is_forward ? forward_ns : backward_ns, after));
      ++next[stage];
      moved = true;
    }
  }
  EXPECT_EQ(makespan(run(graph)), (micro_batches + stages - 1) * (forward_ns + backward_ns));
}

TEST(TaskGraph, RandomGraphsKeepEveryConstraintAndTheCriticalPathSpansTheRun) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    TaskGraph graph;
    const int tasks = 1 + static_cast<int>(random() % 40);
    for (int id = 0; id < tasks; ++id) {
      Task task{.ranks = {static_cast<int>(random() % 4)},
                .duration_ns = static_cast<std::int64_t>(random() % 9)};
      for (int k = 0; k < 2 && id > 0; ++k) task.after.push_back(static_cast<int>(random() % id));
      graph.add(std::move(task));
    }
    const std::vector<TaskRun> runs = run(graph);
    for (int id = 0; id < tasks; ++id) {
      EXPECT_GE(runs[id].slack_ns, 0);
      for (const TaskId earlier : graph.tasks[id].after) {
        EXPECT_GE(runs[id].start_ns, runs[earlier].end_ns);
      }
      for (int other = 0; other < id; ++other) {
        if (graph.tasks[other].ranks == graph.tasks[id].ranks) {
          EXPECT_GE(runs[id].start_ns, runs[other].end_ns);
        }
      }
    }
    const std::vector<TaskId> path = critical_path(awaited_tasks(graph, runs), runs);
    std::int64_t busy = 0;
    for (const TaskId id : path) busy += graph.tasks[id].duration_ns;
    EXPECT_EQ(busy, makespan(runs));
  }
}

}  // namespace
}  // namespace tessera
