// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <map>
#include <set>

#include "cost_models/fit/derived_calibration.h"
#include "gui/reshard/flow_matrix_model.h"
#include "gui/reshard/methods_model.h"
#include "gui/reshard/reshard_facts.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

std::shared_ptr<const ReshardFacts> facts_of(const Plan& plan) {
  Problems problems;
  const auto constants = calibration_named(plan.provenance.calibration, plan.cluster, problems);
  return std::make_shared<const ReshardFacts>(reshard_facts(plan, *constants));
}

TEST(ReshardFacts, FlowsAreTheBytesThatThePlanStates) {
  for (const Plan* plan : {&digits_plan(), &split_plan()}) {
    const auto facts = facts_of(*plan);
    ASSERT_FALSE(facts->parts.empty()) << facts->no_flows.toStdString();
    const PlannedReshard& pair = plan->reshard.front();
    std::map<int, std::int64_t> received;
    std::int64_t total = 0;
    for (const Flow& flow : facts->parts[0].flows) {
      if (flow.from == flow.to) continue;
      received[flow.to] += flow.bytes;
      total += flow.bytes;
    }
    std::int64_t most = 0;
    for (const auto& [rank, bytes] : received) most = std::max(most, bytes);
    EXPECT_EQ(most, pair.bytes_received.value);
    EXPECT_EQ(total, pair.total_received_bytes.value);
    // Its parts are the model, each byte once.
    std::map<std::pair<int, int>, std::int64_t> of_parts;
    for (std::size_t part = 1; part < facts->parts.size(); ++part) {
      for (const Flow& flow : facts->parts[part].flows) {
        of_parts[{flow.from, flow.to}] += flow.bytes;
      }
    }
    for (const Flow& flow : facts->parts[0].flows) {
      EXPECT_EQ((of_parts[{flow.from, flow.to}]), flow.bytes);
    }
  }
}

// As the executor's own test of its steps says: every byte once, nobody read by two or reading two
// at a time, and no longer than the busiest end needs.
TEST(ReshardFacts, StepsMoveEveryByteWithoutTwoReadersOfOne) {
  const auto found = answer(PlanQuery{.model = "qwen2.5-7b",
                                      .cluster = "h100-8",
                                      .workload = "grpo-7b-1k",
                                      .fixed = {"actor.tp=4", "rollout.tp=2"}});
  const auto facts = facts_of(*std::get<SharedPlan>(found.result));
  ASSERT_FALSE(facts->steps.empty()) << facts->no_steps.toStdString();
  std::map<std::pair<int, int>, std::int64_t> moved, wanted;
  std::map<int, std::int64_t> sent, received;
  std::int64_t length = 0, busiest = 0;
  for (const Flow& flow : facts->parts[0].flows) {
    if (flow.from == flow.to) continue;
    wanted[{flow.from, flow.to}] = flow.bytes;
    busiest = std::max({busiest, sent[flow.from] += flow.bytes, received[flow.to] += flow.bytes});
  }
  for (const ReshardPart& step : facts->steps) {
    std::set<int> senders, readers;
    std::int64_t longest = 0;
    for (const Flow& flow : step.flows) {
      EXPECT_TRUE(senders.insert(flow.from).second && readers.insert(flow.to).second);
      moved[{flow.from, flow.to}] += flow.bytes;
      longest = std::max(longest, flow.bytes);
    }
    length += longest;
  }
  EXPECT_EQ(moved, wanted);
  EXPECT_GE(length, busiest);
  EXPECT_LE(length, busiest + facts->ranks * (std::int64_t{1} << 20));
  // They are offered behind the whole model, and shown.
  FlowMatrixModel model;
  model.setFacts(facts);
  ASSERT_EQ(facts->choices().size(), facts->parts.size() + facts->steps.size());
  EXPECT_EQ(facts->choices()[1], &facts->steps[0]);
  model.setPart(1);
  EXPECT_EQ(model.travelling().size(), facts->steps[0].flows.size());
  // Where a run has none the reason is said.
  EXPECT_TRUE(facts_of(split_plan())->no_steps.contains("one node"));
  EXPECT_TRUE(facts_of(digits_plan())->no_steps.contains("Processors"));
}

TEST(ReshardFacts, OfManyRanksFlowsAreThoseBetweenNodes) {
  const auto found = answer(PlanQuery{.model = "qwen2.5-7b",
                                      .cluster = "h100-64",
                                      .workload = "grpo-7b-1k",
                                      .nodes = 16,
                                      .fixed = {"actor.tp=4"}});
  const Plan& plan = *std::get<SharedPlan>(found.result);
  ASSERT_GT(plan.world_size(), kMostFlowRanks);
  const auto facts = facts_of(plan);
  EXPECT_TRUE(facts->by_node);
  FlowMatrixModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  model.setFacts(facts);
  EXPECT_EQ(model.rowCount(), 16);
  EXPECT_EQ(model.endName(3), "node 3");
}

TEST(FlowMatrixModel, KeepsTheContractAndShowsEachPart) {
  FlowMatrixModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  EXPECT_EQ(model.rowCount(), 0);
  const auto facts = facts_of(digits_plan());
  model.setFacts(facts);
  ASSERT_EQ(model.rowCount(), 4);
  ASSERT_EQ(model.columnCount(), 4);
  for (std::size_t part = 0; part < facts->parts.size(); ++part) {
    model.setPart(static_cast<int>(part));
    std::int64_t sum = 0;
    double most = 0;
    for (int row = 0; row < 4; ++row) {
      for (int column = 0; column < 4; ++column) {
        const QModelIndex at = model.index(row, column);
        sum += at.data(FlowMatrixModel::BytesRole).toLongLong();
        most = std::max(most, at.data(FlowMatrixModel::ShareRole).toDouble());
        EXPECT_EQ(at.data(FlowMatrixModel::StaysRole).toBool(), row == column);
      }
    }
    std::int64_t wanted = 0;
    for (const Flow& flow : facts->parts[part].flows) wanted += flow.bytes;
    EXPECT_EQ(sum, wanted);
    EXPECT_DOUBLE_EQ(most, model.travelling().empty() ? 0 : 1);
  }
}

// verl gathers every tensor whole: each rank gets what it lacks of the model.
TEST(ReshardFacts, OfAnEngineThatGathersSayWhoseBytesARankGets) {
  const auto found = answer(PlanQuery{.model = "qwen2.5-32b",
                                      .cluster = "h800-64",
                                      .workload = "grpo-7b-1k",
                                      .fixed = {"actor.pp=2", "actor.tp=4"},
                                      .engine = "verl-megatron"});
  const SharedPlan plan = std::get<SharedPlan>(found.result);
  const auto facts = facts_of(*plan);
  EXPECT_TRUE(facts->no_flows.isEmpty()) << facts->no_flows.toStdString();
  EXPECT_FALSE(facts->counted.isEmpty());
  EXPECT_EQ(facts->used, ReshardMethod::verl_buckets);
  ASSERT_EQ(facts->parts.size(), 3u);  // the model and two stages
  std::map<int, std::int64_t> received, held;
  for (const Flow& flow : facts->parts[0].flows) {
    (flow.from == flow.to ? held : received)[flow.to] += flow.bytes;
  }
  ASSERT_EQ(received.size(), 64u);
  std::int64_t most = 0;
  for (const auto& [rank, bytes] : received) {
    most = std::max(most, bytes);
    EXPECT_EQ(bytes + held.at(rank), received.begin()->second + held.begin()->second);
  }
  const auto method = std::find_if(
      facts->methods.begin(), facts->methods.end(),
      [&](const MethodCost& cost) { return cost.method == ReshardMethod::verl_buckets; });
  EXPECT_EQ(most, method->received.value);
  // Its stages are the model, each byte once.
  std::map<std::pair<int, int>, std::int64_t> of_stages;
  for (std::size_t part = 1; part < facts->parts.size(); ++part) {
    for (const Flow& flow : facts->parts[part].flows) of_stages[{flow.from, flow.to}] += flow.bytes;
  }
  for (const Flow& flow : facts->parts[0].flows) {
    EXPECT_EQ((of_stages[{flow.from, flow.to}]), flow.bytes);
  }
}

// FSDP's shards lie over Ulysses' groups, too: the arrows, the table and the plan count one
// another's bytes.
TEST(ReshardFacts, OfUlyssesGroupsAreTheBytesThatThePlanStates) {
  const auto found = answer(PlanQuery{.model = "qwen2.5-7b",
                                      .cluster = "h100-8",
                                      .workload = "grpo-7b-1k",
                                      .fixed = {"actor.cp=2", "actor.dp_shard=4"},
                                      .engine = "verl"});
  const SharedPlan plan = std::get<SharedPlan>(found.result);
  ASSERT_EQ(plan->find(Role::actor)->layout.cp, 2);
  const auto facts = facts_of(*plan);
  double total = 0;
  for (const Flow& flow : facts->parts.at(0).flows) {
    if (flow.from != flow.to) total += static_cast<double>(flow.bytes);
  }
  const auto stated = static_cast<double>(plan->reshard.front().total_received_bytes.value);
  EXPECT_NEAR(total, stated, 1e-3 * stated);
}

// What goes on to ranks of the rollout's own is in the type of the wire, whatever was gathered: of
// Qwen2.5-7B the bytes that its model.safetensors.index.json states (metadata.total_size).
TEST(ReshardFacts, ARolloutOfItsOwnReceivesWhatTheModelsFilesHold) {
  constexpr std::int64_t kFiles = 15'231'233'024;
  Problems problems;
  PlanRequest request = request_from({.model = "qwen2.5-7b",
                                      .cluster = "h100-8",
                                      .workload = "grpo-7b-1k",
                                      .fixed = {"placement=standalone"},
                                      .engine = "verl"},
                                     problems);
  request.one_step_off = true;
  const auto found = make_plan(request, problems);
  ASSERT_TRUE(found && std::holds_alternative<Plan>(*found));
  const Plan& plan = std::get<Plan>(*found);
  ASSERT_EQ(plan.find(Role::actor)->dtypes.master, DType::fp32);
  const auto facts = facts_of(plan);
  std::map<int, std::int64_t> received;
  for (const Flow& flow : facts->parts.at(0).flows) received[flow.to] += flow.bytes;
  for (const int rank : plan.find(Role::rollout)->ranks) EXPECT_EQ(received[rank], kFiles) << rank;
}

TEST(MethodsModel, HasEveryMethodAndSaysWhyOneCannotBeUsed) {
  MethodsModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  // To GPUs of the rollout's own nothing can be gathered in place.
  const auto found = answer(PlanQuery{.model = "qwen2.5-7b",
                                      .cluster = "h100-64",
                                      .workload = "grpo-7b-1k",
                                      .fixed = {"placement=actor+reference | rollout"}});
  const auto facts = facts_of(*std::get<SharedPlan>(found.result));
  model.setMethods(facts->methods, facts->used);
  ASSERT_EQ(model.rowCount(), static_cast<int>(kReshardMethods.size()));
  int unusable = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    const MethodCost& cost = facts->methods[static_cast<std::size_t>(row)];
    const QString name = model.index(row, MethodsModel::Method).data().toString();
    const bool used = model.index(row, MethodsModel::Method).data(MethodsModel::UsedRole).toBool();
    EXPECT_EQ(used, cost.method == ReshardMethod::copy_engine);  // as a plan of ours is priced
    EXPECT_EQ(name.toStdString(), std::string(name_of(cost.method)) + (used ? " (this plan)" : ""));
    if (cost.unusable.empty()) {
      EXPECT_DOUBLE_EQ(
          model.index(row, MethodsModel::Total).data(MethodsModel::SortRole).toDouble(),
          cost.total.value);
    } else {
      ++unusable;
      EXPECT_EQ(model.index(row, MethodsModel::Total).data().toString(), "-");
      EXPECT_EQ(model.index(row, MethodsModel::Meanwhile).data().toString().toStdString(),
                cost.unusable);
    }
  }
  EXPECT_GT(unusable, 0);
}

}  // namespace
}  // namespace tessera::gui
