// Oracles: closed forms and recurrences of hand-made plans.
#include "simulator/engine/plan_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "simulator/engine/pipeline_tasks.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

std::int64_t makespan(const std::vector<TaskRun>& runs) {
  std::int64_t end = 0;
  for (const TaskRun& run : runs) end = std::max(end, run.end_ns);
  return end;
}

Plan training_plan(int pp, int dp, std::int64_t tokens) {
  Plan plan =
      plan_of_calls({{Phase::update_critic, Role::critic, CallKind::train, {"prompts"}, {}}});
  plan.roles = {hand_role(plan, Role::critic, 0, 1, pp, dp, tokens)};
  return plan;
}

/// 1F1B by its definition: stage by stage, operation after operation, until nothing changes.
std::int64_t one_f_one_b(const std::vector<std::int64_t>& forward,
                         const std::vector<std::int64_t>& backward, int count) {
  const int stages = static_cast<int>(forward.size());
  std::map<std::pair<int, int>, std::int64_t> f_end, b_end;  // by stage, micro-batch
  for (int round = 0; round < 4 * stages * count; ++round) {
    for (int s = 0; s < stages; ++s) {
      const auto at = static_cast<std::size_t>(s);
      std::int64_t now = 0;
      const auto do_forward = [&](int m) {
        now = std::max(now, s > 0 ? f_end[{s - 1, m}] : 0) + forward[at];
        f_end[{s, m}] = now;
      };
      const auto do_backward = [&](int m) {
        now = std::max(now, s + 1 < stages ? b_end[{s + 1, m}] : f_end[{s, m}]) + backward[at];
        b_end[{s, m}] = now;
      };
      const int ahead = std::min(stages - 1 - s, count);
      for (int m = 0; m < ahead; ++m) do_forward(m);
      for (int m = ahead; m < count; ++m) {
        do_forward(m);
        do_backward(m - ahead);
      }
      for (int m = count - ahead; m < count; ++m) do_backward(m);
    }
  }
  return b_end[{0, count - 1}];
}

TEST(PlanTasks, AnEvenPipelineTakesTheClosedFormOf1F1B) {
  const int stages = 4, count = 8;  // 16 sequences of 12 tokens, 2 in a micro-batch
  const Plan plan = training_plan(stages, 1, 24);
  const Calibration calibration = arithmetic_only();
  const PlanCosts priced(plan, calibration);
  const RoleCosts& costs = priced.of(plan.roles[0].role);
  const MicroBatch micro_batch{{24, 2, 2 * 144}, 8};
  const double f = costs.forward(micro_batch, count)[1].time.seconds;
  const double b = costs.backward(micro_batch, count)[1].time.seconds;
  const Simulation simulated = simulate(plan, calibration);
  // A value head of one column is 1/3000 of a stage.
  EXPECT_NEAR(simulated.step_s / ((count + stages - 1) * (f + b)), 1, 1e-3);
  EXPECT_NEAR(simulated.phases_idle.at(Phase::update_critic),
              static_cast<double>(stages - 1) / (count + stages - 1), 1e-3);
}

TEST(PlanTasks, UnevenPipelinesFollowTheDefinitionOf1F1BExactly) {
  for (const auto& [layers, tokens] : std::vector<std::pair<std::vector<int>, std::int64_t>>{
           {{1, 7}, 24}, {{5, 1, 2}, 48}, {{3, 1, 1, 3}, 12}, {{8}, 48}, {{2, 6}, 1000}}) {
    Plan plan = training_plan(static_cast<int>(layers.size()), 1, tokens);
    std::int64_t first = 0;
    plan.roles[0].layout.stages.clear();
    for (const int count : layers) {
      plan.roles[0].layout.stages.push_back({first, first + count});
      first += count;
    }
    const Calibration calibration = arithmetic_only();
    const PlanCosts priced(plan, calibration);
    const RoleCosts& costs = priced.of(plan.roles[0].role);
    const auto packed = pack_micro_batches(std::vector<std::int64_t>(16, 4), 8, 1, tokens).front();
    const int count = static_cast<int>(packed.size());
    std::vector<std::int64_t> forward, backward;
    for (const ChunkPass& pass : costs.forward(packed[0], count)) {
      forward.push_back(nanoseconds(pass.time.seconds));
    }
    for (const ChunkPass& pass : costs.backward(packed[0], count)) {
      backward.push_back(nanoseconds(pass.time.seconds));
    }
    const IterationTasks tasks = build_iteration(plan, calibration);
    ASSERT_EQ(16 % count, 0);  // all micro-batches are alike
    EXPECT_EQ(makespan(run(tasks.graph)), one_f_one_b(forward, backward, count));
  }
}

TEST(PlanTasks, AForwardPipelineTakesItsSumAndTheSlowestStageForEveryFurtherMicroBatch) {
  Plan plan = plan_of_calls({{Phase::values, Role::critic, CallKind::infer, {"prompts"}, {}}});
  plan.roles = {hand_role(plan, Role::critic, 0, 1, 4, 2, 24)};
  const Calibration calibration = arithmetic_only();
  const PlanCosts priced(plan, calibration);
  const RoleCosts& costs = priced.of(plan.roles[0].role);
  std::int64_t sum = 0, slowest = 0;
  for (const ChunkPass& pass : costs.forward({{24, 2, 2 * 144}, 8}, 4)) {
    sum += nanoseconds(pass.time.seconds);
    slowest = std::max(slowest, nanoseconds(pass.time.seconds));
  }
  EXPECT_EQ(makespan(run(build_iteration(plan, calibration).graph)), sum + 3 * slowest);
}

TEST(PlanTasks, CallsOnDisjointRanksOverlapAndOnSharedRanksFollowOneAnother) {
  const Dataflow calls = {{Phase::old_log_prob, Role::actor, CallKind::infer, {"prompts"}, {"a"}},
                          {Phase::ref, Role::reference, CallKind::infer, {"prompts"}, {"b"}},
                          {Phase::adv, Role::actor, CallKind::compute, {"a", "b"}, {"c"}}};
  const auto step_with = [&](int reference_rank, int reference_tp) {
    Plan plan = plan_of_calls(calls);
    plan.roles = {hand_role(plan, Role::actor, 0, 2, 1, 1, 48),
                  hand_role(plan, Role::reference, reference_rank, reference_tp, 1, 1, 48)};
    return simulate(plan, arithmetic_only());
  };
  const Simulation apart = step_with(2, 1), together = step_with(0, 1), partly = step_with(1, 2);
  const double actor = apart.phases_s.at(Phase::old_log_prob);
  const double reference = apart.phases_s.at(Phase::ref);
  EXPECT_GT(reference, actor);  // half the tensor parallelism
  EXPECT_DOUBLE_EQ(apart.step_s, reference);
  EXPECT_DOUBLE_EQ(together.step_s, actor + reference);
  EXPECT_DOUBLE_EQ(partly.step_s, actor + partly.phases_s.at(Phase::ref));
  // Rank 2 waits for nothing, ranks 0 and 1 for the reference.
  EXPECT_DOUBLE_EQ(apart.ranks[2].idle_share, 0);
  EXPECT_NEAR(apart.ranks[0].idle_share, 1 - actor / reference, 1e-12);
}

TEST(PlanTasks, AnOptimizerStepFollowsEveryMiniBatchOfEveryEpoch) {
  Plan plan = training_plan(2, 2, 24);
  plan.workload.mini_batches = 2;
  plan.workload.epochs = 3;
  plan.roles[0].batching.mini_batch = 8;
  plan.roles[0].layout.zero = 1;
  Calibration calibration = arithmetic_only();
  for (CollectiveConstants& constants : calibration.collectives)
    constants.bandwidth = BytesPerSecond{1e9};
  const IterationTasks tasks = build_iteration(plan, calibration);
  std::map<std::string, int> count;
  std::map<std::string, std::int64_t> bytes;
  for (const Task& task : tasks.graph.tasks) {
    ++count[task.name];
    bytes[task.name] += task.bytes;
  }
  EXPECT_EQ(count["optimizer"], 2 * 6);  // stages x steps
  EXPECT_EQ(count["reduce gradients"], 2 * 6);
  EXPECT_EQ(count["gather parameters"], 2 * 6);
  EXPECT_EQ(count["F0"], 2 * 2 * 6);  // stages x replicas x steps
  EXPECT_EQ(count["F1"], count["B1"]);
  EXPECT_EQ(count["F2"], 0);  // 4 sequences of a replica, 2 in a micro-batch
  EXPECT_EQ(bytes["reduce gradients"], 2 * bytes["gather parameters"]);  // fp32, bf16
}

TEST(PlanTasks, AReshardCopiesTheExactBytesToEveryDestination) {
  Plan plan = plan_of_calls({{Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"r"}}});
  plan.roles = {hand_role(plan, Role::actor, 0, 4, 1, 1, 48),
                hand_role(plan, Role::rollout, 0, 2, 1, 2, 48)};
  plan.reshard.emplace_back();
  Calibration calibration = arithmetic_only();
  calibration.collectives.back().bandwidth = BytesPerSecond{1e9};
  const ReshardPlan exact = reshard_plan_of(plan, plan.reshard[0]);
  const IterationTasks tasks = build_iteration(plan, calibration);
  const auto runs = run(tasks.graph);
  std::int64_t total = 0, slowest = 0;
  for (const Task& task : tasks.graph.tasks) {
    if (task.stream != Stream::copy) continue;
    EXPECT_EQ(task.bytes, exact.traffic[static_cast<std::size_t>(task.ranks[0])].received);
    // A byte takes a nanosecond at the destination's port and at its senders'.
    std::int64_t longest = task.bytes;
    for (const Transfer& transfer : exact.transfers) {
      if (transfer.destination != task.ranks[0] || transfer.source == task.ranks[0]) continue;
      longest =
          std::max(longest, exact.traffic[static_cast<std::size_t>(transfer.source)].sent.value);
    }
    EXPECT_NEAR(static_cast<double>(task.duration_ns), static_cast<double>(longest), 1);
    total += task.bytes;
    slowest = std::max(slowest, task.duration_ns);
  }
  EXPECT_GT(total, 0);
  EXPECT_EQ(total, exact.total_received.value);
  ASSERT_EQ(tasks.calls.size(), 2u);  // the reshard, then the generation after its barrier
  EXPECT_EQ(runs[static_cast<std::size_t>(tasks.calls[1].start)].start_ns, slowest);
}

TEST(PlanTasks, GenerationTakesAsLongAsItsSlowestReplica) {
  Plan plan = plan_of_calls({{Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"r"}}});
  plan.workload.response_tokens = {100, 1.0, 400};
  plan.roles = {hand_role(plan, Role::actor, 0, 1, 1, 2, 48),
                hand_role(plan, Role::rollout, 0, 1, 1, 2, 48)};
  const Simulation simulated = simulate(plan, arithmetic_only(), {.seed = 4});
  std::map<int, std::int64_t> end;
  for (const Span& span : simulated.timeline.spans) end[span.rank] = span.end_ns;
  EXPECT_NE(end[0], end[1]);
  EXPECT_DOUBLE_EQ(simulated.phases_s.at(Phase::gen),
                   static_cast<double>(std::max(end[0], end[1])) * 1e-9);
}

}  // namespace
}  // namespace tessera
