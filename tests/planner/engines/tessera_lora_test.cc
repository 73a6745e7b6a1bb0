// Plans of the own executor that train low-rank adapters: what they hold, what moves, and which
// plans there are.
#include <gmock/gmock.h>

#include "planner/engines/engine_check.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// Qwen2.5-7B; peft prints 40,370,176 trainable parameters with r = 16 on every linear weight.
constexpr std::int64_t kWeights = 7'615'616'512, kAdapters = 40'370'176;
constexpr std::int64_t kLayers = 28, kHidden = 3584, kKeys = 512, kFfn = 18944;

PlanRequest adapted(PlanRequest request, const std::vector<std::string>& fixed = {}) {
  Problems problems;
  set_adapters(request, {.rank = 16});
  request.fixed = parse_settings(fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

PlanRequest of_7b(const std::vector<std::string>& fixed) {
  return adapted(request_for("h200-8"), fixed);
}

ParallelLayout whole_stages(int tp) { return {{.tp = tp}, 0, even_stages(kLayers, 1)}; }

// Of a rank of two tensor-parallel ones: A or B of each matrix is cut.
std::int64_t cut_in_two() {
  const std::int64_t q = kHidden + kHidden / 2, k = kHidden + kKeys / 2, up = kHidden + kFfn / 2;
  return kLayers * 16 * (q + 2 * k + q + 2 * up + up);
}

TEST(TesseraLora, OneRankHoldsFrozenWeightsAndStatesOfTheAdaptersAlone) {
  const Plan plan = planned(of_7b({"placement=colocated", "actor.gpus=1", "actor.offload=none"}));
  const MemoryUse& update = plan.find(Role::actor)->memory.at(Phase::update_actor);
  EXPECT_EQ(update.weights, 2 * (kWeights + kAdapters));
  EXPECT_EQ(update.gradients, 4 * kAdapters);
  EXPECT_EQ(update.master_weights, 4 * kAdapters);
  EXPECT_EQ(update.optimizer, 8 * kAdapters);
  EXPECT_EQ(plan.find(Role::rollout)->memory.at(Phase::gen).weights, 2 * (kWeights + kAdapters));
  EXPECT_EQ(plan.reshard.at(0).bytes_received, 0);
}

TEST(TesseraLora, ShardsCutTheWeightsAndReplicasHaveAllAdapters) {
  const Plan plan = planned(of_7b({"actor.tp=1", "actor.pp=1", "actor.cp=1", "actor.zero=3",
                                   "actor.dp_shard=8", "actor.offload=none", "rollout.tp=1"}));
  const MemoryUse& update = plan.find(Role::actor)->memory.at(Phase::update_actor);
  EXPECT_EQ(update.weights, 2 * (kWeights / 8 + kAdapters));
  EXPECT_EQ(update.gradients, 4 * kAdapters);
  EXPECT_EQ(update.optimizer, 8 * kAdapters);
  // Every rank has all of them.
  EXPECT_EQ(plan.reshard.at(0).bytes_received, 0);
}

TEST(TesseraLora, TensorParallelRanksHaveTheAdaptersOfWhatTheyCompute) {
  const Plan plan = planned(of_7b({"placement=colocated", "actor.gpus=4", "rollout.gpus=4",
                                   "actor.tp=2", "actor.pp=2", "rollout.tp=2"}));
  const MemoryUse& gen = plan.find(Role::rollout)->memory.at(Phase::gen);
  Problems problems;
  const ParameterTable table = parameter_table(*read_model_spec("qwen2.5-7b", problems));
  EXPECT_EQ(gen.weights.value - 2 * cut_in_two(),
            2 * stage_elements(shard_elements(table, 2, 1, 1), whole_stages(2), 0));
  // A rank lacks the other stage's.
  EXPECT_EQ(plan.reshard.at(0).bytes_received, cut_in_two());
  EXPECT_EQ(plan.reshard.at(0).lower_bound_bytes, cut_in_two());
  EXPECT_THAT(describe(plan),
              HasSubstr("adapters of rank 16 beside frozen weights: 40.37 million"));
  EXPECT_THAT(describe(plan), HasSubstr("; adapters alone, once before "));
}

// Oracle: what two H100 received in the first step and in each later one
// (benchmarks/results/h100x2-adapters.json, "TP2 -> 2 x TP1", rank 32).
TEST(TesseraLora, ReceivesWhatTwoGpusReceived) {
  Problems problems;
  PlanRequest request = request_for("h100-8");
  request.models["actor"] = {*read_model_spec("qwen2.5-0.5b", problems), "qwen2.5-0.5b", ""};
  set_adapters(request, {.rank = 32, .alpha = 64});
  request.fixed = settings({"placement=colocated", "actor.gpus=2", "actor.tp=2", "rollout.tp=1"});
  const Plan plan = planned(request);
  EXPECT_EQ(plan.reshard.at(0).bytes_received, 12'779'520);
  EXPECT_EQ(first_bytes(plan, plan.reshard.at(0)), 493'988'864);
  const Plan sharded = [&] {
    request.fixed = settings({"placement=colocated", "actor.gpus=2", "actor.tp=1", "actor.pp=1",
                              "actor.zero=3", "rollout.tp=2"});
    return planned(request);
  }();
  EXPECT_EQ(sharded.reshard.at(0).bytes_received, 0);
  EXPECT_EQ(first_bytes(sharded, sharded.reshard.at(0)), 43'904);
}

TEST(TesseraLora, APoolOfItsOwnReceivesAllOfThem) {
  const Plan plan = planned(of_7b(
      {"placement=actor+reference|rollout", "actor.gpus=4", "rollout.gpus=4", "rollout.tp=2"}));
  EXPECT_EQ(plan.reshard.at(0).bytes_received, 2 * cut_in_two());
}

// Oracle: the exact ranges of the adapters' table, which a run recomputes.
TEST(TesseraLora, TheEvaluatorsBytesAreThoseOfTheRanges) {
  struct Case {
    int tp, pp, rollout_tp;
  };
  for (const Case& c : {Case{4, 2, 2}, {2, 2, 4}, {8, 1, 2}, {1, 2, 1}, {2, 1, 2}}) {
    const PlanRequest request =
        of_7b({"actor.tp=" + std::to_string(c.tp), "actor.pp=" + std::to_string(c.pp), "actor.cp=1",
               "actor.zero=0", "actor.vpp=1", "actor.head_layers=0",
               "rollout.tp=" + std::to_string(c.rollout_tp)});
    const Plan plan = planned(request);
    CostEvaluator costs(priced_request_of(plan, request.calibration));
    const Bytes estimated = costs.reshard_bytes(candidate_of(plan, *plan.find(Role::actor)),
                                                candidate_of(plan, *plan.find(Role::rollout)));
    EXPECT_EQ(estimated, plan.reshard.at(0).bytes_received) << c.tp << c.pp << c.rollout_tp;
  }
}

TEST(TesseraLora, AStepTrainsNoFrozenWeight) {
  const PlanRequest whole = by_engine(request_for("h200-8"), "tessera");
  const auto seconds = [](const PlanRequest& request) {
    Candidate actor;
    actor.role = Role::actor;
    actor.gpus = actor.dp = 8;
    actor.tokens = 16384;
    actor.recompute = Recompute::full;
    return CostEvaluator(request).seconds(actor)[Phase::update_actor];
  };
  const PlanRequest some = adapted(whole);
  // Of four products of a pass with recomputation one is left out, but for what adapters add.
  const double ratio = seconds(some) / seconds(whole);
  EXPECT_GT(ratio, 0.72);
  EXPECT_LT(ratio, 0.95);
}

TEST(TesseraLora, TheReferenceIsTheActor) {
  for (PlanRequest request : {ppo_request(1), ppo_request(2)}) {
    request.workload.response_tokens = {512, 0, 512};
    const Plan plan = planned(adapted(request));
    EXPECT_TRUE(reference_lies_as_actor(plan)) << describe(plan);
    EXPECT_EQ(plan.find(Role::reference)->memory.at(Phase::ref).weights, 0);
    const RolePlan& actor = *plan.find(Role::actor);
    EXPECT_GT(actor.memory.at(Phase::ref).weights, 0);
    EXPECT_THAT(actor.layout.zero, AnyOf(0, 3)) << "no stage that cuts states";
    EXPECT_TRUE(plan.reshard.at(0).keep);
    EXPECT_TRUE(outside_capabilities(plan).empty());
    Problems problems;
    const auto read = parse_plan(to_json(plan), "plan.json", problems);
    ASSERT_TRUE(read) << Error(problems).what();
    EXPECT_EQ(*read, plan);
  }
}

TEST(TesseraLora, AReferenceThatLiesElsewhereIsPricedWithItsWeights) {
  const PlanRequest request = adapted(ppo_request(1));
  Plan plan = planned(request);
  RolePlan& reference =
      *std::find_if(plan.roles.begin(), plan.roles.end(),
                    [](const RolePlan& role) { return role.role == Role::reference; });
  reference.layout = {{.tp = 8}, 0, even_stages(32, 1)};
  ASSERT_EQ(plan.find(Role::actor)->ranks.size(), 8U);
  ASSERT_FALSE(reference_lies_as_actor(plan));
  EXPECT_FALSE(priced_request_of(plan, request.calibration).lora.contains(Role::reference));
  EXPECT_TRUE(request_of(plan, request.calibration).lora.contains(Role::reference));
}

TEST(TesseraLora, SettingsThatAdaptersLeaveNothingOfAreNamed) {
  EXPECT_THAT(describe(refused(of_7b({"actor.zero=1"}))), HasSubstr("0 or 3 with adapters"));
  EXPECT_THAT(describe(refused(of_7b({"rollout.offload=all"}))),
              HasSubstr("none with adapters, whose weights move once"));
}

TEST(TesseraLora, OthersAreRefusedWithTheReason) {
  const auto why = [](PlanRequest request, const Lora& lora) {
    set_adapters(request, lora);
    Problems problems;
    make_plan(request, problems);
    return std::string(Error(problems).what());
  };
  PlanRequest experts = request_for("h200-8");
  Problems problems;
  experts.models["actor"] = {*read_model_spec("qwen3-30b-a3b", problems), "qwen3-30b-a3b", ""};
  EXPECT_THAT(why(experts, {.rank = 8}), HasSubstr("experts have no adapters"));
  const PlanRequest dense = request_for("h200-8");
  EXPECT_THAT(why(dense, {.rank = 8, .targets = {"linear_qkv"}}),
              HasSubstr("no matrix of a layer is called linear_qkv, but q_proj"));
  EXPECT_THAT(why(by_engine(dense, std::string(kInvariantEngine)), {.rank = 8}),
              HasSubstr("trains and serves every weight"));
  EXPECT_THAT(why(by_engine(dense, "megatron"), {.rank = 8}), HasSubstr("every weight"));
}

}  // namespace
}  // namespace tessera
