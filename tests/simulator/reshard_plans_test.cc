// The comparison of reshard methods against what planner and simulator say of the same plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "cost_models/collective.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/layout/box.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/reshard_demand.h"
#include "cost_models/reshard/reshard_bound.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "simulator/engine/simulate.h"
#include "simulator/reshard/arrivals.h"
#include "simulator/reshard/methods.h"

namespace tessera {
namespace {

PlanRequest request_for(const std::string& engine, const std::vector<std::string>& words) {
  Problems problems;
  PlanRequest request;
  request.engine = engine;
  request.models["actor"] = {read_model_spec("qwen2-7b", problems).value(), "qwen2-7b", ""};
  request.cluster = read_cluster_spec("h100-8", problems).value();
  request.workload = read_workload("grpo-7b-1k", problems).value();
  request.calibration = calibration_for_cluster(request.cluster, problems).value();
  request.created = "2026-01-01T00:00:00Z";
  request.fixed = parse_settings(words, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

Plan planned(const PlanRequest& request) {
  Problems problems;
  return std::get<Plan>(make_plan(request, problems).value());
}

ReshardComparison comparison_of(const Plan& plan, const Calibration& calibration) {
  const RolePlan& rollout = *plan.find(Role::rollout);
  return ReshardComparison({.table = parameter_table(plan.model_of(Role::actor)),
                            .from = rank_map_of(plan, Role::actor),
                            .to = rollout.layout,
                            .to_ranks = rollout.ranks,
                            .planned = rank_map_of(plan, Role::rollout),
                            .gather = planned_gather(plan),
                            .weights = plan.find(Role::actor)->dtypes.wire,
                            .master = plan.find(Role::actor)->dtypes.master,
                            .cluster = plan.cluster,
                            .calibration = calibration,
                            .bucket = {}});
}

TEST(ReshardMethods, OfVerlAreWhatThePlannerSaysOfItsPlan) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"actor.dp_shard=8"}, {"actor.dp_shard=8", "rollout.tp=2"}}) {
    const PlanRequest request = request_for("verl", words);
    const Plan plan = planned(request);
    const MethodCost cost =
        comparison_of(plan, request.calibration).cost(ReshardMethod::verl_buckets);
    const PlannedReshard& pair = plan.reshard.front();
    const auto received = static_cast<double>(pair.bytes_received.value);
    // The planner takes shards as equal; 28 heads on 8 ranks are 3 or 4 each.
    EXPECT_NEAR(static_cast<double>(cost.received.value), received, 2.5e-3 * received);
    const Seconds predicted = plan.prediction.phases_s.at(Phase::reshard);
    EXPECT_NEAR(cost.total, predicted, 1e-3 * predicted.value);
  }
}

// FSDP's shards lie over Ulysses' groups, too: of M bytes in bf16 each of 8 ranks keeps an eighth
// of the 2M in fp32 that are gathered, whatever share of a sequence it has.
TEST(ReshardMethods, OfVerlsUlyssesRanksGatherWhatTheOtherShardsHold) {
  const PlanRequest request = request_for("verl", {"actor.cp=2", "actor.dp_shard=4"});
  const Plan plan = planned(request);
  ASSERT_EQ(plan.find(Role::actor)->layout.cp, 2);
  const MethodCost cost =
      comparison_of(plan, request.calibration).cost(ReshardMethod::verl_buckets);
  const double gathered =
      4.0 * static_cast<double>(parameter_table(plan.model_of(Role::actor)).elements());
  const double wanted = gathered * 7 / 8;
  const PlannedReshard& pair = plan.reshard.front();
  EXPECT_NEAR(static_cast<double>(pair.bytes_received.value), wanted, 2.5e-3 * wanted);
  EXPECT_NEAR(static_cast<double>(cost.received.value), wanted, 2.5e-3 * wanted);
  EXPECT_NEAR(static_cast<double>(cost.total_received.value), 8 * wanted, 1e-3 * 8 * wanted);
  EXPECT_NEAR(static_cast<double>(pair.total_received_bytes.value), 8 * wanted, 1e-3 * 8 * wanted);
}

struct EnginesPlan {
  const char *engine, *model, *cluster;
  std::vector<std::string> words;
};

// What plan, explain and timeline say of a reshard, and what the table of methods does, by one
// computation: whichever engine gathers, over whichever nodes.
TEST(ReshardMethods, OfEveryEngineThatGathersAreWhatItsPlanAndSimulationSay) {
  const std::vector<EnginesPlan> all = {
      {"verl", "qwen2-7b", "h100-8", {"actor.dp_shard=8"}},
      {"verl", "qwen2.5-32b", "h800-64", {"placement=colocated"}},
      {"verl", "qwen2-7b", "h100-64", {"placement=colocated", "actor.dp_shard=8"}},
      {"verl-veomni", "qwen2-7b", "h100-8", {"placement=colocated"}},
      {"verl-torchtitan", "qwen3-8b", "h100-8", {"placement=colocated"}},
      {"verl-megatron", "qwen2-7b", "h100-8", {"actor.tp=2", "actor.pp=2"}},
      {"verl-megatron", "qwen2.5-32b", "h800-64", {"placement=colocated", "actor.pp=8"}},
      {"verl-megatron", "qwen2.5-32b", "h800-64", {"actor.tp=2", "actor.pp=4"}},
      {"verl-megatron", "qwen2.5-32b", "h800-64", {"actor.tp=8", "actor.pp=1"}},
      {"verl-megatron", "qwen3-30b-a3b", "h800-64", {"placement=colocated"}},
      {"tessera", "qwen2-7b", "h100-8", {"placement=colocated", "actor.tp=2"}}};
  for (const EnginesPlan& each : all) {
    PlanRequest request = request_for(each.engine, each.words);
    Problems problems;
    request.models["actor"].spec = read_model_spec(each.model, problems).value();
    request.cluster = read_cluster_spec(each.cluster, problems).value();
    request.calibration = calibration_for_cluster(request.cluster, problems).value();
    request.calibration.handover.value = 1.25;  // as a run may tell
    const Plan plan = planned(request);
    const ReshardMethod own =
        planned_gather(plan) ? ReshardMethod::verl_buckets : ReshardMethod::copy_engine;
    const ReshardComparison comparison = comparison_of(plan, request.calibration);
    const std::string told = std::string(each.engine) + " " + each.model + " on " + each.cluster;
    ASSERT_FALSE(comparison.apart()) << told;
    const Seconds stated = plan.prediction.phases_s.at(Phase::reshard);
    const double simulated = simulate(plan, request.calibration).phases_s.at(Phase::reshard);
    EXPECT_NEAR(comparison.cost(own).total, simulated, 2e-9) << told;
    // Of exact ranges a plan knows a closed form.
    const bool closed = own == ReshardMethod::copy_engine;
    EXPECT_NEAR(stated, simulated, closed ? 0.02 * simulated : 2e-9) << told;
  }
}

TEST(ReshardMethods, OfOursAreWhatTheSimulatorRuns) {
  const PlanRequest request =
      request_for("tessera", {"actor.tp=8", "rollout.tp=2", "placement=colocated"});
  Plan plan = planned(request);
  for (const auto& [transport, method] :
       {std::pair{ReshardTransport::copy_engine, ReshardMethod::copy_engine},
        {ReshardTransport::window, ReshardMethod::window},
        {ReshardTransport::send_recv, ReshardMethod::send_recv}}) {
    for (const std::int64_t mebibytes : {0, 64}) {
      plan.reshard.front().transport = transport;
      plan.reshard.front().bucket_bytes = Bytes{mebibytes << 20};
      const double simulated = simulate(plan, request.calibration).phases_s.at(Phase::reshard);
      const MethodCost cost =
          comparison_of(plan, request.calibration).cost(method, plan.reshard.front().bucket_bytes);
      EXPECT_NEAR(cost.total, simulated, 2e-9) << name_of(transport) << " " << mebibytes;
      EXPECT_EQ(cost.received, plan.reshard.front().bytes_received);
    }
  }
}

TEST(ReshardMethods, APlanStatesTheTransportThatItWasAskedForAndIsPricedWithIt) {
  PlanRequest request =
      request_for("tessera", {"actor.tp=8", "rollout.tp=2", "placement=colocated"});
  const Plan plain = planned(request);
  request.reshard = {ReshardTransport::send_recv, Bytes{64 << 20}};
  const Plan asked = planned(request);
  EXPECT_EQ(asked.reshard.front().transport, ReshardTransport::send_recv);
  EXPECT_EQ(asked.reshard.front().bucket_bytes, 64 << 20);
  EXPECT_EQ(asked.reshard.front().peak_bytes, plain.reshard.front().peak_bytes + Bytes{256 << 20});
  EXPECT_GT(asked.prediction.phases_s.at(Phase::reshard),
            1.05 * plain.prediction.phases_s.at(Phase::reshard));
  EXPECT_EQ(asked.find(Role::rollout)->memory.at(Phase::reshard).reshard, 256 << 20);
}

// Pricing, simulation and trace of one plan, by transport and bucket.
TEST(ReshardMethods, TransportAndBucketMatterInPlanSimulationAndTrace) {
  const PlanRequest request =
      request_for("tessera", {"actor.tp=8", "rollout.tp=2", "placement=colocated"});
  struct Said {
    double priced, simulated, traced;
    Bytes memory;
  };
  const auto say = [&](ReshardTransport transport, std::int64_t bucket) {
    Plan plan = planned(request);
    plan.reshard.front().transport = transport;
    plan.reshard.front().bucket_bytes = Bytes{bucket};
    CostEvaluator costs = evaluator_of(plan, request.calibration);
    const Candidate rollout = candidate_of(plan, *plan.find(Role::rollout));
    const Simulation simulation = simulate(plan, request.calibration);
    Said said{costs.reshard_seconds(candidate_of(plan, *plan.find(Role::actor)), rollout),
              simulation.phases_s.at(Phase::reshard), 0,
              costs.memory(rollout, Phase::reshard).reshard};
    for (const Span& span : simulation.timeline.spans) {
      if (span.phase != Phase::reshard || span.stream != Stream::copy) continue;
      said.traced = std::max(said.traced, static_cast<double>(span.end_ns - span.start_ns) * 1e-9);
    }
    return said;
  };
  const Said automatic = say(ReshardTransport::automatic, 0);
  const Said engines = say(ReshardTransport::copy_engine, 0);
  EXPECT_EQ(engines.priced, automatic.priced);
  EXPECT_EQ(engines.simulated, automatic.simulated);
  EXPECT_EQ(engines.memory, 0);
  const Said messages = say(ReshardTransport::send_recv, 0);
  const Said host = say(ReshardTransport::host, std::int64_t{1} << 30);
  const Said small = say(ReshardTransport::copy_engine, std::int64_t{1} << 20);
  const Said large = say(ReshardTransport::copy_engine, std::int64_t{1} << 40);
  for (const auto member : {&Said::priced, &Said::simulated, &Said::traced}) {
    EXPECT_GT(messages.*member, 1.05 * engines.*member);
    EXPECT_GT(host.*member, 2 * engines.*member);
    EXPECT_GT(small.*member, 2 * engines.*member);
    EXPECT_EQ(large.*member, engines.*member);
  }
  EXPECT_EQ(messages.memory, std::int64_t{512} << 20);
  EXPECT_EQ(say(ReshardTransport::send_recv, std::int64_t{1} << 20).memory, 4 << 20);
}

/// An actor and a rollout behind it, on nodes of their own.
struct Pools {
  const char* model;
  Candidate actor, rollout;
};

Candidate pool_of(Role role, Degrees degrees, int gpus) {
  degrees.dp = gpus / (degrees.tp * degrees.pp);
  return {degrees, role, gpus};
}

RankMap ranks_of(const Candidate& candidate, std::int64_t layers, int first) {
  std::vector<int> ranks(static_cast<std::size_t>(candidate.gpus));
  std::iota(ranks.begin(), ranks.end(), first);
  Problems problems;
  RankMap map = make_rank_map(training_order(candidate), layout_of(candidate, layers), ranks,
                              nullptr, "", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

// Of the busiest link, counted box by box: every GPU's own port, its card, its node's uplink, each
// way.
Seconds counted_seconds(const std::vector<Transfer>& transfers, const PlanRequest& request) {
  const ClusterSpec& cluster = request.cluster;
  const int gpus = static_cast<int>(cluster.gpus_per_node);
  const int cards = static_cast<int>(cluster.nics_per_node);
  std::map<std::array<int, 3>, double> bytes;  // by kind, way, number
  for (const Transfer& transfer : transfers) {
    for (const int way : {0, 1}) {
      const int rank = way == 0 ? transfer.source : transfer.destination;
      const std::array numbers{rank, rank * cards / gpus, rank / gpus};
      for (int kind = 0; kind < 3; ++kind) {
        bytes[{kind, way, numbers[static_cast<std::size_t>(kind)]}] +=
            2.0 * static_cast<double>(volume(transfer.box));
      }
    }
  }
  const BytesPerSecond card = cluster.nic * request.calibration.inter_efficiency.value;
  const std::array rates{card, card, cards * card / std::max(1.0, cluster.blocking())};
  Seconds most;
  for (const auto& [link, moved] : bytes) {
    most = std::max(most, Traffic{moved} / rates[static_cast<std::size_t>(link[0])]);
  }
  return most;
}

// Few GPUs that train and many that generate: what leaves the former decides. Oracles: the bytes of
// every box by sender and receiver, flows over shared cards and uplinks, and the minimum cuts.
TEST(ReshardMethods, ToMoreGpusThanTheActorsIsPricedByWhatLeavesThem) {
  const auto actor = [](Degrees degrees, int gpus) { return pool_of(Role::actor, degrees, gpus); };
  const auto rollout = [](Degrees degrees, int gpus) {
    return pool_of(Role::rollout, degrees, gpus);
  };
  const std::vector<Pools> all = {
      {"qwen2-7b", actor({.tp = 8}, 8), rollout({.tp = 8}, 16)},
      {"qwen2-7b", actor({.tp = 2, .pp = 4}, 8), rollout({.tp = 4}, 24)},
      {"qwen2-7b", actor({.tp = 1, .pp = 3}, 24), rollout({.tp = 1}, 40)},
      {"qwen2-7b", actor({.tp = 4}, 16), rollout({.tp = 2}, 8)},
      {"qwen2-7b", actor({.tp = 2}, 8), rollout({.tp = 2, .pp = 2}, 24)},
      {"qwen2.5-1.5b", actor({.tp = 1, .pp = 4}, 8), rollout({.tp = 2}, 24)}};
  int by_senders = 0;
  for (const char* const cluster : {"h100-64", "h100-64-roce-2to1"}) {
    for (const std::int64_t cards : {8, 2}) {
      for (const Pools& pools : all) {
        PlanRequest request = request_for("tessera", {});
        Problems problems;
        request.cluster = read_cluster_spec(cluster, problems).value();
        request.cluster.nics_per_node = cards;
        request.models["actor"].spec = read_model_spec(pools.model, problems).value();
        request.models["actor"].spec.layers = 6;  // of which ends are a larger part
        request.calibration = calibration_for_cluster(request.cluster, problems).value();
        CostEvaluator costs(request);
        const Seconds priced = costs.reshard_seconds(pools.actor, pools.rollout, false);

        const ParameterTable table = parameter_table(request.models["actor"].spec);
        const RankMap from = ranks_of(pools.actor, table.model.layers, 0);
        const RankMap to = ranks_of(pools.rollout, table.model.layers, pools.actor.gpus);
        const auto node_of = [](int rank) { return rank / 8; };
        const ReshardPlan exact =
            plan_reshard(model_tensors(table, from, to, DType::bf16), {.node_of = node_of});
        const std::string told = std::string(cluster) + " " + std::to_string(cards) + " cards, " +
                                 pools.model + " " + std::to_string(pools.actor.gpus) + " to " +
                                 std::to_string(pools.rollout.gpus);
        const double counted = counted_seconds(exact.transfers, request).value;
        EXPECT_NEAR(priced, counted, 0.02 * counted + 1e-3) << told;
        const std::array element{Bytes{2}};
        const std::array machines{Machines{request.cluster, request.calibration}};
        double simulated = 0;
        for (const Arrival& arrival : arrivals_of(
                 exact.transfers, element, pools.actor.gpus + pools.rollout.gpus, {}, machines)) {
          simulated = std::max(simulated, arrival.seconds.value);
        }
        // Fair shares of an uplink leave less to the flows that need it longest.
        const bool uneven = pools.actor.pp > 1 && request.cluster.blocking() > 1;
        EXPECT_LE(priced, 1.02 * simulated + 1e-3) << told;
        EXPECT_GE(priced, (uneven ? 0.88 : 0.98) * simulated - 1e-3) << told;
        const ReshardBound bound = reshard_bound(reshard_demands(table, from, to, DType::bf16),
                                                 request.cluster, request.calibration);
        EXPECT_LE(bound.seconds, priced * 1.001) << told;
        by_senders += exact.bytes_sent > exact.bytes_received ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(by_senders, 20);
}

// Plan, simulator and comparison of methods, as a search answers it.
TEST(ReshardMethods, ToMoreGpusThanTheActorsAgreeInPlanAndSimulation) {
  PlanRequest request = request_for("tessera", {"placement=actor+reference|rollout", "actor.gpus=8",
                                                "rollout.gpus=24", "actor.pp=2", "rollout.tp=2"});
  Problems problems;
  request.cluster = read_cluster_spec("h100-64", problems).value();
  request.cluster.nodes = 4;
  const Plan plan = planned(request);
  ASSERT_EQ(plan.find(Role::rollout)->ranks.size(), 24);
  const double priced = plan.prediction.phases_s.at(Phase::reshard).value;
  const double simulated = simulate(plan, request.calibration).phases_s.at(Phase::reshard);
  EXPECT_NEAR(priced, simulated, 0.02 * simulated);
  const MethodCost cost = comparison_of(plan, request.calibration).cost(ReshardMethod::copy_engine);
  EXPECT_NEAR(cost.total, simulated, 2e-9);
  EXPECT_GT(cost.sent, cost.received * 2);
  const auto received = static_cast<double>(cost.received.value);
  EXPECT_GT(priced, 2 * received / inter_node_bandwidth(plan.cluster, request.calibration).value);
}

}  // namespace
}  // namespace tessera
