// Oracles: the planner's closed-form evaluator, the plan's memory, the trace format's rules.
#include "simulator/engine/simulate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "simulator/engine/role_costs.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

Plan planned(const PlanRequest& request) {
  Problems problems;
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty());
  const Plan* const plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
  EXPECT_NE(plan, nullptr);
  return plan != nullptr ? *plan : Plan{};
}

PlanRequest large_request(const std::string& algorithm, int nodes,
                          std::vector<std::string> fixed = {}, double cv = 0) {
  Workload workload = workload_of(algorithm, KlPlace::reward, algorithm == "ppo");
  workload.prompts_per_step = 256;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, cv, cv > 0 ? 1024 : 512};
  workload.mini_batches = 4;
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, nodes, 80));
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

PlanRequest digits_request(std::vector<std::string> fixed) {
  Workload workload = workload_of("ppo", KlPlace::none, false);
  workload.prompts_per_step = 32;
  workload.samples_per_prompt = 16;
  ClusterSpec cluster = cluster_of(4, 1, 4);
  cluster.device.name = "cpu";
  PlanRequest request = request_of(tiny_model(), workload, cluster, "cpu");
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

// Stages of equal layers, one chunk each.
PlanRequest with_equal_stages(PlanRequest request) {
  for (const Role role : roles_of(request.workload)) {
    if (role == Role::rollout) continue;
    request.fixed.values[{role, Field::vpp}] = 1;
    request.fixed.values[{role, Field::head_layers}] = 0;
  }
  return request;
}

// Requests with their plans; the layouts differ.
const std::vector<std::pair<PlanRequest, Plan>>& samples() {
  static const auto plans = [] {
    std::vector<std::pair<PlanRequest, Plan>> result;
    for (const PlanRequest& request :
         {large_request("grpo", 2), large_request("ppo", 4),
          large_request("grpo", 1, {"actor.tp=4", "actor.pp=2", "rollout.tp=2", "rollout.dp=4"}),
          large_request("grpo", 2, {"actor.tp=2", "actor.pp=4", "actor.zero=1"}),
          large_request("ppo", 4, {"placement=actor+reference|critic+reward"}),
          large_request("ppo", 4, {"placement=standalone"})}) {
      result.emplace_back(request, planned(with_equal_stages(request)));
    }
    return result;
  }();
  return plans;
}

// Phases are compared one by one. What the two count differently: the simulator's rollout makes its
// first token in the prefill (one decode step of 512 less) and takes every context as it is; the
// reshard's bytes are those of each destination and its real sources; micro-batches are whole
// sequences.
TEST(Simulate, AgreesWithTheEvaluatorWhereLengthsAreFixed) {
  for (const auto& [request, plan] : samples()) {
    const Simulation simulated = simulate(plan, request.calibration);
    EXPECT_NEAR(simulated.step_s / plan.prediction.step_s.value, 1, 0.005);
    for (const auto& [phase, seconds] : plan.prediction.phases_s) {
      if (seconds < 0.01 * plan.prediction.step_s) continue;
      EXPECT_NEAR(simulated.phases_s.at(phase) / seconds.value, 1, 0.015) << name_of(phase);
    }
  }
}

// Fewer slots than sequences of drawn lengths: refills alone (tessera) and as parts of decode
// steps.
TEST(Simulate, AgreesWithTheEvaluatorOnRefilledSlots) {
  for (const char* engine : {"tessera", "verl"}) {
    PlanRequest request = large_request("grpo", 1, {"rollout.max_sequences=160"}, 0.5);
    request.engine = engine;
    request.traits = traits_of(engine);
    const Plan plan = planned(request);
    ASSERT_FALSE(plan.roles.empty()) << engine;
    const Simulation simulated = simulate(plan, request.calibration);
    EXPECT_NEAR(simulated.phases_s.at(Phase::gen) / plan.prediction.phases_s.at(Phase::gen).value,
                1, 0.05)
        << engine;
  }
}

// Software that hands weights over takes as long in a simulated step as in the plan's, on one GPU,
// where no bytes move, too.
TEST(Simulate, ReshardsOfEnginesThatGatherTakeThePlansTime) {
  for (const char* words : {"actor.gpus=8", "actor.gpus=1"}) {
    PlanRequest request = large_request("grpo", 1, {words, "placement=colocated"});
    request.engine = "verl";
    request.traits = traits_of("verl");
    request.models["actor"].spec.layers = 2;
    const Plan plan = planned(request);
    ASSERT_FALSE(plan.roles.empty()) << words;
    const double reshard = plan.prediction.phases_s.at(Phase::reshard);
    EXPECT_GT(reshard, request.traits.handover.call.value) << words;
    const Simulation simulated = simulate(plan, request.calibration);
    EXPECT_NEAR(simulated.phases_s.at(Phase::reshard), reshard, 1e-6) << words;
  }
}

// The same where ranks move exact ranges of bytes: vLLM's servers sleep and wake.
TEST(Simulate, ServersThatSleepAndWakeDoSoInExactReshardsToo) {
  for (const char* words : {"actor.gpus=8", "actor.gpus=1"}) {
    PlanRequest request = large_request("grpo", 1, {words, "placement=colocated"});
    request.engine = "tessera+vllm";
    request.traits = traits_of(request.engine);
    request.models["actor"].spec.layers = 2;
    const Plan plan = planned(request);
    ASSERT_FALSE(plan.roles.empty()) << words;
    const double reshard = plan.prediction.phases_s.at(Phase::reshard);
    EXPECT_GE(reshard, request.traits.handover.call.value) << words;
    const Simulation simulated = simulate(plan, request.calibration);
    EXPECT_NEAR(simulated.phases_s.at(Phase::reshard) / reshard, 1, 0.02) << words;
  }
}

TEST(Simulate, AgreesWithTheEvaluatorOnSharedCores) {
  for (const std::vector<std::string>& fixed : std::vector<std::vector<std::string>>{
           {"actor.tp=2", "actor.pp=2", "rollout.tp=2", "rollout.dp=2"},
           {"actor.tp=4", "rollout.tp=1", "rollout.dp=4"},
           {"placement=actor|critic"}}) {
    const PlanRequest request = digits_request(fixed);
    const Plan plan = planned(request);
    const Simulation simulated = simulate(plan, request.calibration);
    for (const auto& [phase, seconds] : plan.prediction.phases_s) {
      // Three decode steps and the prefill's draw instead of four steps.
      const double tolerance = phase == Phase::gen ? 0.2 : 0.01;
      if (seconds < 0.01 * plan.prediction.step_s) continue;
      EXPECT_NEAR(simulated.phases_s.at(phase) / seconds.value, 1, tolerance) << name_of(phase);
    }
  }
}

TEST(Simulate, PeaksEqualThePlansMemory) {
  for (const auto& [request, plan] : samples()) {
    const Simulation simulated = simulate(plan, request.calibration);
    EXPECT_EQ(simulated.peak_bytes(), plan.prediction.peak_bytes);
    for (const RankSummary& rank : simulated.ranks) {
      EXPECT_LE(rank.peak_bytes, plan.prediction.peak_bytes);
    }
  }
}

TEST(Simulate, ActivationsRiseAndFallWithTheMicroBatchesInFlight) {
  const int stages = 4;
  Plan plan = plan_of_calls({{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}});
  plan.roles = {hand_role(plan, Role::actor, 0, 1, stages, 1, 24)};
  const Calibration calibration = arithmetic_only();
  const PlanCosts priced(plan, calibration);
  const RoleCosts& costs = priced.of(plan.roles[0].role);
  const Simulation simulated = simulate(plan, calibration);
  std::map<int, std::set<std::int64_t>> levels;
  std::map<int, std::int64_t> last;
  for (const MemorySample& sample : simulated.timeline.memory) {
    levels[sample.rank].insert(sample.use.activations);
    last[sample.rank] = sample.use.total();
  }
  for (int stage = 0; stage < stages; ++stage) {
    std::set<std::int64_t> expected;
    for (int in_flight = 0; in_flight <= stages - stage; ++in_flight) {
      expected.insert(costs.memory(Phase::update_actor, stage, in_flight).activations);
    }
    EXPECT_EQ(levels[stage], expected) << stage;
    EXPECT_EQ(last[stage], costs.resident(stage).total());
  }
}

TEST(Simulate, EqualSeedsGiveEqualTimelinesAndOtherSeedsOthers) {
  const PlanRequest request = large_request("grpo", 1, {}, 0.5);
  const Plan plan = planned(request);
  const Simulation first = simulate(plan, request.calibration, {.seed = 5});
  EXPECT_EQ(first, simulate(plan, request.calibration, {.seed = 5}));
  EXPECT_NE(first.step_s, simulate(plan, request.calibration, {.seed = 6}).step_s);
}

TEST(Simulate, DrawnLengthsStayNearTheirExpectation) {
  const PlanRequest request = large_request("grpo", 2, {}, 0.5);
  const Plan plan = planned(request);
  const Simulation simulated = simulate(plan, request.calibration, {.seed = 1, .steps = 3});
  EXPECT_NEAR(simulated.step_s / plan.prediction.step_s.value, 1, 0.1);
}

TEST(Simulate, FurtherStepsFollowTheUpdateThatTheyNeed) {
  const auto& [request, plan] = samples().front();
  const Simulation one = simulate(plan, request.calibration, {.steps = 1});
  const Simulation three = simulate(plan, request.calibration, {.steps = 3});
  EXPECT_NEAR(three.step_s, one.step_s, 1e-6 * one.step_s);
  std::map<std::pair<int, Phase>, std::int64_t> start, end;
  for (const Span& span : three.timeline.spans) {
    if (span.rank != 0 || span.stream != Stream::phases) continue;
    start[{span.step, span.phase}] = span.start_ns;
    end[{span.step, span.phase}] = span.end_ns;
  }
  for (const int step : {0, 1}) {
    EXPECT_GE((start[{step + 1, Phase::gen}]), (end[{step, Phase::update_actor}]));
  }
}

TEST(Simulate, TheRolloutEndsWithItsPhaseAndEverySequenceOnce) {
  std::size_t generated = 0;
  for (const auto& [request, plan] : samples()) {
    const Simulation simulation = simulate(plan, request.calibration, {.seed = 2, .steps = 2});
    if (!simulation.phases_s.contains(Phase::gen)) continue;
    const std::vector<RolloutTail> tails = rollout_tails(simulation.rollout);
    ASSERT_EQ(tails.size(), 2u);
    double seconds = 0;
    for (const RolloutTail& tail : tails) {
      EXPECT_EQ(tail.sequences, plan.workload.sequences());
      EXPECT_LE(tail.half_ns, tail.most_ns);
      EXPECT_LE(tail.most_ns, tail.end_ns);
      seconds += static_cast<double>(tail.end_ns - tail.start_ns) * 1e-9 / 2;
    }
    EXPECT_NEAR(seconds, simulation.phases_s.at(Phase::gen), 1e-8);
    // Every rank of a replica is busy until its last sequence has ended.
    for (const ReplicaRollout& replica : simulation.rollout) {
      for (const Span& span : simulation.timeline.spans) {
        const bool its = span.stream == Stream::phases && span.phase == Phase::gen &&
                         span.step == replica.step &&
                         std::binary_search(replica.ranks.begin(), replica.ranks.end(), span.rank);
        if (!its) continue;
        EXPECT_NEAR(static_cast<double>(span.end_ns),
                    static_cast<double>(replica.samples.back().time_ns), 1);
        ++generated;
      }
    }
  }
  EXPECT_GT(generated, 8u);
}

TEST(Simulate, SpansOfAStreamNestAndLieInsideTheirPhase) {
  for (const auto& [request, plan] : samples()) {
    const Simulation simulated = simulate(plan, request.calibration);
    std::map<std::pair<int, Phase>, const Span*> phases;
    const Span* before = nullptr;
    for (const Span& span : simulated.timeline.spans) {
      EXPECT_LT(span.start_ns, span.end_ns);
      const bool same = before != nullptr && before->rank == span.rank;
      if (same && before->stream == span.stream) {
        EXPECT_GE(span.start_ns, before->end_ns);
      }
      before = &span;
      if (span.stream == Stream::phases) phases[{span.rank, span.phase}] = &span;
    }
    for (const Span& span : simulated.timeline.spans) {
      const Span* const phase = phases.at({span.rank, span.phase});
      EXPECT_TRUE(phase->start_ns <= span.start_ns && span.end_ns <= phase->end_ns);
    }
  }
}

TEST(Simulate, TheCriticalPathFillsTheStep) {
  for (const auto& [request, plan] : samples()) {
    const Simulation simulated = simulate(plan, request.calibration);
    std::int64_t now = 0;
    for (const PathTask& task : simulated.critical_path) {
      EXPECT_EQ(task.start_ns, now);
      EXPECT_EQ(task.slack_ns, 0);
      EXPECT_FALSE(task.ranks.empty());
      now = task.end_ns;
    }
    EXPECT_DOUBLE_EQ(static_cast<double>(now) * 1e-9, simulated.step_s);
  }
}

TEST(Simulate, EverySpanStartsWhereWhatItWaitedForEnded) {
  for (const auto& [request, plan] : samples()) {
    const Simulation simulated = simulate(plan, request.calibration);
    std::map<int, const Span*> of_task;
    for (const Span& span : simulated.timeline.spans) {
      if (span.stream != Stream::phases) of_task[span.task] = &span;
    }
    for (const Span& span : simulated.timeline.spans) {
      ASSERT_LT(static_cast<std::size_t>(span.task), simulated.tasks.size());
      const TaskNote& note = simulated.tasks[static_cast<std::size_t>(span.task)];
      const std::int64_t end = note.awaited < 0 ? 0 : of_task.at(note.awaited)->end_ns;
      EXPECT_EQ(span.start_ns, end) << span.name;
      EXPECT_LE(note.communication_ns, span.end_ns - span.start_ns);
    }
  }
}

TEST(Simulate, ExposesCommunicationOnlyWhereThereIsSome) {
  Plan plan = plan_of_calls({{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}});
  Calibration calibration = arithmetic_only();
  for (CollectiveConstants& constants : calibration.collectives)
    constants.bandwidth = BytesPerSecond{1e9};
  plan.roles = {hand_role(plan, Role::actor, 0, 1, 1, 1, 48)};
  EXPECT_EQ(simulate(plan, calibration).exposed_comm_s(), 0);
  plan.roles = {hand_role(plan, Role::actor, 0, 1, 1, 2, 48)};
  const PlanCosts priced(plan, calibration);
  const RoleCosts& costs = priced.of(plan.roles[0].role);
  EXPECT_NEAR(simulate(plan, calibration).exposed_comm_s(), costs.reduce_seconds(0), 2e-9);
  plan.roles = {hand_role(plan, Role::actor, 0, 2, 1, 1, 48)};
  const Simulation tensor_parallel = simulate(plan, calibration);
  EXPECT_GT(tensor_parallel.exposed_comm_s(), 0);
  EXPECT_LT(tensor_parallel.exposed_comm_s(), tensor_parallel.step_s);
}

TEST(Simulate, TheTraceIsWhatPerfettoReads) {
  const auto& [request, plan] = samples()[2];
  const Simulation simulated = simulate(plan, request.calibration);
  const auto trace = nlohmann::json::parse(to_chrome_trace({&simulated.timeline}));
  std::map<std::string, int> kinds;
  std::set<int> streams;
  for (const auto& event : trace.at("traceEvents")) {
    const auto kind = event.at("ph").get<std::string>();
    ++kinds[kind];
    EXPECT_TRUE(event.at("pid").is_number_integer());
    EXPECT_TRUE(event.at("name").is_string());
    if (kind == "X") {
      EXPECT_GE(event.at("ts").get<double>(), 0);
      EXPECT_GT(event.at("dur").get<double>(), 0);
      streams.insert(event.at("tid").get<int>());
    }
    if (kind == "C") {
      EXPECT_GT(event.at("args").at("weights").get<std::int64_t>(), 0);
    }
  }
  EXPECT_EQ(kinds["X"], static_cast<int>(simulated.timeline.spans.size()));
  EXPECT_EQ(kinds["C"], static_cast<int>(simulated.timeline.memory.size()));
  EXPECT_EQ(streams, (std::set<int>{0, 1, 2, 3}));
}

TEST(Simulate, AnIterationOnManyGpusTakesAMoment) {
  PlanRequest request = large_request("ppo", 128, {}, 0.5);
  request.workload.prompts_per_step = 1024;
  request.workload.samples_per_prompt = 4;
  const Plan plan = planned(request);
  const auto start = std::chrono::steady_clock::now();
  const Simulation simulated = simulate(plan, request.calibration);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << plan.world_size() << " ranks, " << simulated.timeline.spans.size() << " spans, "
            << simulated.timeline.memory.size() << " samples in " << seconds.count() << " s\n";
  EXPECT_GT(simulated.step_s, 0);
  EXPECT_LT(seconds.count(), 30);
}

// Each role runs on the GPUs of its ranks, whatever the others have.
TEST(Simulate, EveryRoleHasTheSpeedOfItsGpuType) {
  Problems problems;
  std::map<std::string, double> update_s;
  for (const auto& [actor, rollout] :
       {std::pair{"H800-SXM-80GB", "H20-96GB"}, std::pair{"H20-96GB", "H800-SXM-80GB"}}) {
    PlanRequest request =
        large_request("grpo", 8,
                      {"placement=actor+reference|rollout", "actor.gpu=" + std::string(actor),
                       "rollout.gpu=" + std::string(rollout)});
    request.cluster = read_cluster_spec("h800-h20-64", problems).value();
    request.calibration = calibration_for_cluster(request.cluster, problems).value();
    const Plan plan = planned(request);
    const Simulation simulation = simulate(plan, request.calibration, {});
    for (const Phase phase : {Phase::gen, Phase::reshard, Phase::ref, Phase::update_actor}) {
      EXPECT_NEAR(simulation.phases_s.at(phase), plan.prediction.phases_s.at(phase),
                  0.1 * plan.prediction.phases_s.at(phase))
          << name_of(phase) << ", actor on " << actor;
    }
    update_s[actor] = simulation.phases_s.at(Phase::update_actor);
  }
  EXPECT_GT(update_s["H20-96GB"], 3 * update_s["H800-SXM-80GB"]);
}

}  // namespace
}  // namespace tessera
