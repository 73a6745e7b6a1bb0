// Oracles: the plan's own validation, the exact reshard plan, published runs that fit, arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>

#include "planner/engines/engine_check.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/advice.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/limits.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/schedule.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/search/exact.h"
#include "planner/search/search.h"
#include "tests/planner/planned.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

TEST(Plan, OfEveryRequestValidatesAndSurvivesItsFile) {
  for (const PlanRequest& request : {digits_request(), ppo_request(2)}) {
    const Plan plan = planned(request);
    Problems problems;
    validate(plan, "plan.json", problems);
    for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
    EXPECT_TRUE(outside_capabilities(plan).empty());
    const std::string json = to_json(plan);
    const auto again = parse_plan(json, "plan.json", problems);
    ASSERT_TRUE(again) << (problems.empty() ? "" : to_string(problems[0]));
    EXPECT_EQ(to_json(*again), json);
    EXPECT_EQ(*again, plan);
    EXPECT_EQ(planned(request), plan);  // deterministic
  }
}

TEST(Plan, SaysWhetherServersTellLogProbs) {
  PlanRequest request = request_for("h200-8");
  EXPECT_THAT(describe(planned(request)), ::testing::Not(::testing::HasSubstr("log-probs")));
  request.engine = "verl";
  request.traits = traits_of(request.engine);
  EXPECT_THAT(describe(planned(request)),
              ::testing::HasSubstr("sequences at once, log-probs computed again\n"));
  request.choices.log_probs = ToldLogProbs::told;
  EXPECT_THAT(describe(planned(request)),
              ::testing::HasSubstr("sequences at once, log-probs told\n"));
}

TEST(Plan, ObeysTheFixedSettings) {
  const Plan plan = planned(digits_request());
  const RolePlan *actor = plan.find(Role::actor), *rollout = plan.find(Role::rollout);
  ASSERT_TRUE(actor != nullptr && rollout != nullptr);
  EXPECT_EQ(actor->layout.tp, 2);
  EXPECT_EQ(actor->layout.pp, 2);
  EXPECT_EQ(rollout->layout.tp, 2);
  EXPECT_EQ(rollout->layout.dp, 2);
  EXPECT_EQ(actor->ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(rollout->rank_order, RankOrder::strided);
  EXPECT_EQ(actor->batching.mini_batch, 512);
  EXPECT_GE(rollout->batching.max_sequences, 1);
}

/// As a reward model is trained. Each degree alone is the oracle.
TEST(Plan, OfOneTrainedModelAlone) {
  PlanRequest request = ppo_request(1);
  request.workload.algorithm = "custom";
  request.workload.dataflow = {
      {Phase::values, Role::critic, CallKind::infer, {"prompts"}, {"scores"}},
      {Phase::update_critic, Role::critic, CallKind::train, {"prompts", "scores"}, {}}};
  request.workload.kl = KlPlace::none;
  const Plan plan = planned(request);
  ASSERT_EQ(plan.roles.size(), 1U);
  EXPECT_EQ(plan.roles.front().role, Role::critic);
  EXPECT_GT(plan.prediction.mfu, 0.2);
  EXPECT_LT(plan.prediction.mfu, 0.8);
  ASSERT_FALSE(plan.certificate.runner_up.empty());
  EXPECT_THAT(explain(plan, request.calibration, {}), testing::HasSubstr("'critic.tp=8'"));
  const Advice advice = advice_for(plan, request);
  EXPECT_FALSE(advice.ladder.empty());
  for (const Rung& rung : advice.ladder) EXPECT_EQ(rung.words.at(0).rfind("critic.", 0), 0U);
  Seconds best{std::numeric_limits<double>::infinity()};
  for (const char* const tp : {"1", "2", "4", "8"}) {
    Problems problems;
    request.fixed =
        parse_settings(std::vector<std::string>{std::string("critic.tp=") + tp}, problems);
    const auto outcome = make_plan(request, problems);
    const auto* const one = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
    if (one != nullptr) best = std::min(best, one->prediction.step_s);
  }
  EXPECT_EQ(plan.prediction.step_s, best);
}

TEST(Plan, HasAPlacementInItsHeaderThatFixTakes) {
  PlanRequest request = ppo_request(2);
  Problems problems;
  int split = 0, seen = 0;
  for (const Placement& placement : allowed_placements(request, problems)) {
    constexpr int kEvery = 4;  // of them: a search each
    if (placement.size() > 3 || seen++ % kEvery != 0) continue;
    request.fixed.placement = describe(placement);
    const auto outcome = make_plan(request, problems);
    const Plan* const plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
    if (plan == nullptr) continue;
    const std::string header = describe(*plan);
    const auto begin = header.find("placement ") + 10;
    std::string printed = header.substr(begin, header.find('\n') - begin);
    printed = printed.substr(0, printed.find(", one step off"));
    PlanRequest again = request;
    again.fixed.placement = printed;
    const std::vector<Placement> read = allowed_placements(again, problems);
    ASSERT_EQ(read.size(), 1U) << printed;
    EXPECT_EQ(read.front(), placement) << printed;
    split += placement.size() > 1 ? 1 : 0;
  }
  EXPECT_TRUE(problems.empty());
  EXPECT_GT(split, 2);
}

TEST(Plan, CarriesTheExactReshardAndItsVolumeInClosedForm) {
  PlanRequest request = ppo_request(2);
  Problems problems;
  // The closed form is that of equal stages of whole replicas.
  request.fixed = parse_settings(
      std::vector<std::string>{"actor.head_layers=0", "actor.dp_shard=1", "actor.cp=1"}, problems);
  ASSERT_TRUE(problems.empty());
  const Plan plan = planned(request);
  ASSERT_EQ(plan.reshard.size(), 1);
  const ReshardPlan exact = reshard_plan_of(plan, plan.reshard[0]);
  EXPECT_EQ(plan.reshard[0].bytes_received, exact.bytes_received.value);
  EXPECT_EQ(plan.reshard[0].bytes_received, plan.reshard[0].lower_bound_bytes);
  EXPECT_EQ(plan.reshard[0].digest.size(), 16);
  CostEvaluator costs(request);
  const auto candidate = [&](Role role) { return candidate_of(plan, *plan.find(role)); };
  EXPECT_EQ(costs.reshard_bytes(candidate(Role::actor), candidate(Role::rollout)),
            exact.bytes_received.value);
}

TEST(Plan, PredictsEveryScheduledPhaseAndItsSumWhereAllRanksAreShared) {
  PlanRequest request = ppo_request(2);
  request.fixed.placement = "colocated";
  const Plan plan = planned(request);
  Seconds sum;
  for (const ScheduledCall& call : plan.schedule) {
    ASSERT_TRUE(plan.prediction.phases_s.contains(call.phase)) << name_of(call.phase);
    sum += plan.prediction.phases_s.at(call.phase);
  }
  EXPECT_NEAR(sum, plan.prediction.step_s, 1e-9 * sum);
  EXPECT_EQ(plan.prediction.step_s, plan.certificate.value);
  EXPECT_GT(plan.prediction.mfu, 0.1);
  EXPECT_LT(plan.prediction.mfu, 0.8);
  EXPECT_LT(plan.prediction.exposed_comm_s, plan.prediction.step_s);
  const double tokens = 1024.0 * 2048;
  EXPECT_NEAR(plan.prediction.tokens_per_s_per_gpu,
              tokens / plan.prediction.step_s.value / plan.world_size(), 1e-6);
}

TEST(Plan, KeepsEveryRankWithinTheDevicesMemoryInEveryPhase) {
  const PlanRequest request = ppo_request(2);
  const Plan plan = planned(request);
  Bytes peak;
  for (const ScheduledCall& call : plan.schedule) {
    std::vector<Bytes> of_rank(static_cast<std::size_t>(plan.world_size()));
    for (const RolePlan& role : plan.roles) {
      for (const int rank : role.ranks) {
        of_rank[static_cast<std::size_t>(rank)] += role.memory.at(call.phase).total();
      }
    }
    peak = std::max(peak, *std::max_element(of_rank.begin(), of_rank.end()));
  }
  EXPECT_LE(peak, request.cluster.device.memory.value);
  EXPECT_LE(plan.prediction.peak_bytes, peak);  // ranks of other stages than the fullest
  EXPECT_GT(plan.prediction.peak_bytes, peak / 2);
}

// Another algorithm: neither the fastest plan nor a placement that is named brings it unasked.
TEST(Plan, OneStepOffIsTakenOnlyWhereItIsAllowed) {
  PlanRequest request = ppo_request(2);
  for (const char* engine : {"verl", "any"}) {
    request.engine = engine;
    request.one_step_off = false;
    const Plan in_step = planned(request);
    EXPECT_FALSE(is_one_step_off(in_step.schedule)) << engine;
    request.one_step_off = true;
    const Plan ahead = planned(request);
    EXPECT_LE(ahead.prediction.step_s, in_step.prediction.step_s * (1 + 1e-9)) << engine;
  }
  request.engine = "verl";
  request.one_step_off = false;
  for (const char* placement : {"standalone", "actor+critic+reference+reward | rollout"}) {
    request.fixed.placement = placement;
    Problems problems;
    EXPECT_FALSE(make_plan(request, problems).has_value());
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].hint.find("--one-step-off"), std::string::npos);
  }
}

// The actor is where the rollout's weights come from, although no call runs it.
TEST(Plan, OfGenerationAloneIsReadAgain) {
  PlanRequest request = ppo_request(1);
  request.engine = "vllm";
  request.workload.algorithm = "custom";
  request.workload.dataflow = {
      {Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"responses"}}};
  const Plan plan = planned(request);
  Problems problems;
  const auto again = parse_plan(to_json(plan), "plan.json", problems);
  ASSERT_TRUE(problems.empty()) << to_string(problems[0]);
  EXPECT_EQ(*again, plan);
}

/// Generation one step off is verl's to run, not Tessera's.
TEST(Plan, OneStepOffIsNotForEnginesThatTrainInStep) {
  PlanRequest request = ppo_request(2);
  request.engine = "verl";
  request.one_step_off = true;
  request.fixed.placement = "standalone";
  const Plan ahead = planned(request);
  EXPECT_TRUE(is_one_step_off(ahead.schedule));
  EXPECT_TRUE(outside_capabilities(ahead, "plan", "verl").empty());
  const Problems refused = outside_capabilities(ahead, "plan", "tessera");
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused.back().place, "/schedule");
  request.engine = "tessera";
  const Plan apart = planned(request);
  EXPECT_FALSE(is_one_step_off(apart.schedule));
  EXPECT_TRUE(outside_capabilities(apart, "plan", "tessera").empty());
  EXPECT_NE(apart.find(Role::rollout)->ranks, apart.find(Role::actor)->ranks);
}

/// Memory for which the rollout's weights have to go while the actor trains.
TEST(Plan, AnUnmappedRolloutCountsOnlyWhereItsWeightsArePresent) {
  PlanRequest request = digits_request();
  const Plan kept = planned(request);
  Problems problems;
  request.fixed.values.merge(
      parse_settings(std::vector<std::string>{"rollout.offload=all"}, problems).values);
  ASSERT_TRUE(problems.empty());
  const Plan plan = planned(request);
  ASSERT_TRUE(kept.reshard.size() == 1 && plan.reshard.size() == 1);
  EXPECT_TRUE(kept.reshard[0].keep);
  EXPECT_FALSE(plan.reshard[0].keep);
  EXPECT_TRUE(outside_capabilities(plan, "plan", "tessera").empty());
  const auto weights = [](const Plan& of, Phase phase) {
    return of.find(Role::rollout)->memory.at(phase).weights;
  };
  for (const Phase phase : {Phase::reshard, Phase::gen}) {
    EXPECT_GT(weights(plan, phase), 0);
    EXPECT_EQ(weights(plan, phase), weights(kept, phase));
  }
  EXPECT_GT(weights(kept, Phase::update_actor), 0);
  EXPECT_EQ(weights(plan, Phase::update_actor), 0);
  const auto read = parse_plan(to_json(plan), "plan", problems);
  ASSERT_TRUE(read) << to_string(problems[0]);
  EXPECT_FALSE(read->reshard[0].keep);
}

TEST(Lengths, BeyondTheModelsPositionsAreProblems) {
  PlanRequest request = ppo_request(1);
  request.models.at("actor").spec.max_positions = 2047;
  Problems problems;
  EXPECT_FALSE(make_plan(request, problems).has_value());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].found, "2047 positions");
  request.models.at("actor").spec.rope.kind = RopeScalingKind::linear;
  request.models.at("actor").spec.rope.factor = 2;
  problems.clear();
  EXPECT_TRUE(make_plan(request, problems).has_value());
  EXPECT_TRUE(problems.empty());
}

TEST(Lengths, YarnReachesFactorTimesTheOriginalPositions) {
  ModelSpec model = llama_8b();
  model.max_positions = 32768;
  model.rope.kind = RopeScalingKind::yarn;
  model.rope.factor = 4;
  model.rope.original_max_position_embeddings = 32768;
  EXPECT_EQ(context_length(model), 131072);
  model.max_positions = 163840;  // DeepSeek states the reach already
  model.rope.factor = 40;
  model.rope.original_max_position_embeddings = 4096;
  EXPECT_EQ(context_length(model), 163840);
}

TEST(Report, NamesAPlanOneStepOff) {
  Plan plan = planned(digits_request());
  EXPECT_EQ(describe(plan).find("one step off"), std::string::npos);
  for (ScheduledCall& call : plan.schedule) std::erase(call.after, Phase::gen);
  EXPECT_NE(describe(plan).find("one step off"), std::string::npos);
}

TEST(Report, SaysWhichRolesTheEngineDoesNotRun) {
  PlanRequest request = request_for("h100-8");
  request.engine = "vllm";
  EXPECT_NE(describe(planned(request))
                .find("  engine vllm does not run actor, reference: priced under its rules, and "
                      "for another engine to run\n"),
            std::string::npos);
  request.engine = "verl";
  EXPECT_EQ(describe(planned(request)).find("does not run"), std::string::npos);
}

// A million draws of Python's random.lognormvariate, each at most 1,024: 608.5 on average.
TEST(Report, SaysWhichMeanALimitLeavesOfTheLengths) {
  Plan plan = planned(digits_request());
  EXPECT_EQ(describe(plan).find("tokens on average"), std::string::npos);
  plan.workload.response_tokens = {.mean = 640, .cv = 0.5, .max = 1024};
  EXPECT_NE(
      describe(plan).find("responses of 608 tokens on average: 640 before they are cut at 1024\n"),
      std::string::npos);
}

TEST(Request, ThatContradictsItselfIsRefusedWithEveryDefect) {
  PlanRequest request = digits_request();
  request.fixed.values[{Role::critic, Field::tp}] = 2;
  request.fixed.placement = "colocatde";
  Problems problems;
  EXPECT_FALSE(make_plan(request, problems));
  ASSERT_EQ(problems.size(), 2);
  EXPECT_NE(problems[1].hint.find("colocated"), std::string::npos);
  request.engine = "verl-megatron-x";
  problems.clear();
  EXPECT_FALSE(make_plan(request, problems));
  EXPECT_EQ(problems.size(), 1);
}

TEST(Request, MayBringItsOwnEvaluator) {
  PlanRequest request = digits_request();
  request.fixed = {};
  Evaluator flat;  // only tp 4 is fast
  flat.role = [&](const Candidate& candidate) {
    RoleCost cost;
    for (const Phase phase : phases_of(request.workload, candidate.role)) {
      cost.seconds[phase] = Seconds{candidate.tp == 4 ? 1.0 : 2.0};
    }
    return cost;
  };
  flat.reshard_seconds = [](const Candidate&, const Candidate&, bool) { return Seconds{0.5}; };
  Problems problems;
  const auto outcome = make_plan(request, problems, flat);
  const Plan& plan = std::get<Plan>(*outcome);
  EXPECT_EQ(plan.find(Role::actor)->layout.tp, 4);
  EXPECT_EQ(plan.find(Role::rollout)->layout.tp, 4);
  EXPECT_NEAR(plan.prediction.phases_s.at(Phase::reshard), 0.5, 1e-12);
}

// verl's docs/perf/device_tuning.rst: scripts that are known to run (bf16, lengths as stated
// there). Weights and fp32 gradients alone are more than one GPU of 40 GB.
TEST(MemoryFit, AcceptsQwen7BGrpoOnOneH200NodeAndRefusesItOnOneGpu) {
  ModelSpec model = llama_8b();
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 5;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {1024, 0, 1024};
  planned(request_of(model, workload, cluster_of(8, 1, 141), "h200"));
  refused(request_of(model, workload, cluster_of(1, 1, 40)));
}

TEST(Planning, OfFourRolesReportsItsSpeed) {
  for (const int nodes : {2, 16, 128}) {
    const PlanRequest request = ppo_request(nodes);
    const Capabilities& table = engine_named("tessera").capabilities;
    const auto start = std::chrono::steady_clock::now();
    CostEvaluator costs(request);
    const SearchResult result = search_exactly(search_problem(request, table, costs));
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    ASSERT_FALSE(result.best.empty());
    std::cout << nodes * 8 << " GPUs: " << ms << " ms, " << result.evaluated << " candidates, "
              << result.pruned << " cut, " << describe(result.best[0].placement) << ", step "
              << result.best[0].step_s << " s\n";
    EXPECT_LT(ms, 60e3);
  }
}

}  // namespace
}  // namespace tessera
