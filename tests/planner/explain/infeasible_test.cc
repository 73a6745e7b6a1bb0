// Why nothing fits, and whether the nearest fix is one.
#include "planner/explain/infeasible.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/explain/planner.h"
#include "planner/request/request.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(Infeasible, NamesTheEnginesLimitAndWhoHasTheSetting) {
  PlanRequest request = ppo_request(1);
  Problems problems;
  request.fixed = parse_settings(std::vector<std::string>{"actor.ep=2", "critic.tp=2"}, problems);
  const Infeasible none = refused(request);
  ASSERT_EQ(none.reasons.size(), 1u);
  EXPECT_EQ(
      none.reasons[0],
      "actor.ep=2 is beyond engine 'tessera', which has 1 (not ep 2 of a model without experts) "
      "there; plan for engine megatron, verl-megatron or any");
  EXPECT_EQ(none.nearest_fix.find("leave out actor.ep=2"), 0u);
}

// verl's rearrange_micro_batches asserts that a limit holds a longest sequence.
TEST(Infeasible, RefusesLimitsOfTokensThatVerlWouldNotStartWith) {
  PlanRequest request = request_for("h100-8");
  request.engine = "verl";
  Problems problems;
  request.fixed = parse_settings(std::vector<std::string>{"actor.tokens=2047"}, problems);
  EXPECT_THAT(refused(request).reasons,
              ElementsAre(AllOf(HasSubstr("actor.tokens=2047 is beyond engine 'verl', which has at "
                                          "least a longest sequence, 2048, there"),
                                HasSubstr("tessera"), Not(HasSubstr("verl-megatron")))));
  request.fixed = parse_settings(std::vector<std::string>{"actor.tokens=2048"}, problems);
  EXPECT_EQ(planned(request).find(Role::actor)->batching.update_tokens, 2048);
}

TEST(Infeasible, NamesRankPhaseClassAndBytesAndAFixThatWorks) {
  PlanRequest request = ppo_request(1);
  ModelSpec large = llama_8b();
  large.layers = 160;  // more than one node holds with the optimizer on the host
  large.hidden = 8192;
  large.query_heads = 64;
  large.ffn = 28672;
  request.models["actor"].spec = large;
  const Infeasible infeasible = refused(request);
  ASSERT_FALSE(infeasible.shortages.empty());
  const MemoryShortage& shortage = infeasible.shortages[0];
  EXPECT_EQ(shortage.role, Role::actor);
  EXPECT_GT(shortage.missing(), 0);
  EXPECT_GT(shortage.class_bytes, 0);
  EXPECT_FALSE(shortage.tensor_class.empty());
  ASSERT_TRUE(infeasible.nearest_fix.starts_with("use ")) << infeasible.nearest_fix;
  const std::int64_t nodes = std::stoll(infeasible.nearest_fix.substr(4));
  request.cluster.nodes = nodes;
  planned(request);
  request.cluster.nodes = nodes - 1;
  refused(request);
  EXPECT_NE(describe(infeasible).find("nearest fix"), std::string::npos);
}

TEST(Infeasible, ProposesTheRungOfPracticesLadderThatFits) {
  PlanRequest request = digits_request();
  request.models["actor"].spec = llama_8b();
  request.workload.prompt_tokens = 512;
  request.workload.response_tokens = {512, 0, 512};
  request.cluster = cluster_of(8, 1, 80);
  Problems problems;
  request.calibration = *find_calibration("h100", problems);
  // Micro-batches of 64 sequences, nothing recomputed.
  const FixedSettings fixed = parse_settings(
      std::vector<std::string>{"actor.tokens=65536", "actor.recompute=none", "actor.offload=none"},
      problems);
  int rungs = 0;
  for (const double memory : {24.0, 32.0, 40.0, 48.0}) {
    request.cluster.device.memory = from_gib(memory);
    request.fixed = fixed;
    auto outcome = make_plan(request, problems);
    const auto* none = std::get_if<Infeasible>(&*outcome);
    const std::size_t end =
        none == nullptr ? std::string::npos : none->nearest_fix.find(" instead of ");
    if (end == std::string::npos) continue;
    ++rungs;
    const std::string word = none->nearest_fix.substr(0, end);
    const FixedSettings rung = parse_settings(std::vector<std::string>{word}, problems);
    ASSERT_EQ(rung.values.size(), 1u) << word;
    request.fixed.values[rung.values.begin()->first] = rung.values.begin()->second;
    outcome = make_plan(request, problems);
    EXPECT_TRUE(std::holds_alternative<Plan>(*outcome)) << memory << " GiB, " << word;
  }
  EXPECT_GT(rungs, 0);
}

TEST(Infeasible, BlamesTheFixedSettingThatStandsInTheWay) {
  PlanRequest request = ppo_request(1);
  Problems problems;
  const std::vector<std::string> words = {"actor.tp=1", "actor.dp=1", "actor.pp=1", "rollout.tp=2"};
  request.fixed = parse_settings(words, problems);
  request.cluster.device.memory = from_gib(24);  // no way to save memory is enough on one GPU
  EXPECT_TRUE(refused(request).nearest_fix.starts_with("leave out actor."))
      << refused(request).nearest_fix;
}

/// A node of three has blocks of one and of three: two GPUs are none, whatever the model.
TEST(Infeasible, NamesBlocksThatANodeDoesNotHave) {
  PlanRequest request = request_for("h200-8");
  request.cluster.gpus_per_node = 3;
  request.cluster.nodes = 1;
  const auto reason = [&](const std::vector<std::string>& words) {
    Problems problems;
    request.fixed = parse_settings(words, problems);
    const auto outcome = make_plan(request, problems);
    EXPECT_TRUE(outcome.has_value());
    const Infeasible* none = outcome ? std::get_if<Infeasible>(&*outcome) : nullptr;
    return none == nullptr || none->reasons.empty() ? std::string() : none->reasons[0];
  };
  EXPECT_THAT(reason({"actor.gpus=2"}), HasSubstr("actor.gpus=2: the planner's blocks of GPUs "
                                                  "divide a node of 3 (1, 3)"));
  EXPECT_THAT(reason({"actor.tp=2"}), HasSubstr("actor.tp=2 does not divide a node of 3 GPUs"));
}

/// Whole searches are the oracle of the quick question.
TEST(Infeasible, SomethingSpeaksAgainstASettingExactlyWhereNoPlanHasIt) {
  PlanRequest request = ppo_request(1);
  request.models["actor"].spec = llama_8b();
  Planner planner(request);
  int impossible = 0;
  for (const char* key : {"actor.tp=", "critic.pp="}) {
    for (const int value : {3, 8, 64}) {
      Problems problems;
      const std::vector<std::string> words{key + std::to_string(value)};
      const FixedSettings fixed = parse_settings(words, problems);
      request.fixed = fixed;
      const bool has = std::holds_alternative<Plan>(*make_plan(request, problems));
      const std::vector<std::string> reasons = planner.against(fixed, problems);
      EXPECT_EQ(reasons.empty(), has) << words[0];
      if (!has) {
        EXPECT_THAT(refused(request).reasons, testing::IsSupersetOf(reasons)) << words[0];
      }
      if (!has) ++impossible;
    }
  }
  EXPECT_GT(impossible, 1);
}

TEST(Infeasible, NamesWhatADegreeDoesNotDivide) {
  PlanRequest request = request_for("h200-8");
  request.cluster.nodes = 16;
  const auto reason = [&](const std::string& engine, const std::vector<std::string>& words) {
    Problems problems;
    request.engine = engine;
    request.fixed = parse_settings(words, problems);
    const Infeasible none = refused(request);
    return none.reasons.empty() ? std::string() : none.reasons[0];
  };
  EXPECT_EQ(reason("megatron", {"actor.tp=8"}),
            "actor.tp=8: the engine cuts the model's 28 attention heads (4 of keys and values) and "
            "its MLP of 18944 columns into equal parts, and they have no 8");
  EXPECT_EQ(reason("tessera", {"actor.pp=32"}),
            "actor.pp=32: the model has only 28 layers, and a pipeline stage needs one at least");
  EXPECT_EQ(reason("tessera", {"actor.vpp=5"}),
            "actor.vpp=5: virtual stages have equally many layers, and the model's 28 are no "
            "multiple of pp x 5 with any pp above 1");
  EXPECT_EQ(reason("tessera", {"actor.pp=1", "actor.vpp=2"}),
            "actor.pp=1 actor.vpp=2: a pipeline of one stage has no virtual ones");
  EXPECT_EQ(reason("tessera", {"actor.pp=4", "actor.vpp=2"}),
            "actor.pp=4 actor.vpp=2: virtual stages have equally many layers, and the model's 28 "
            "are no multiple of 8");
  EXPECT_EQ(reason("tessera", {"actor.vpp=14"}),
            "actor.vpp=14: plans have at most 8 virtual stages on a rank");
  EXPECT_EQ(reason("tessera", {"actor.dp=256"}),
            "actor.dp=256 needs more than the 128 GPUs that the cluster has");
  request.workload.prompts_per_step = 96;
  EXPECT_THAT(reason("tessera", {"actor.dp=128"}), HasSubstr("actor.dp=128 does not divide the "));
}

/// Every role fits alone: the shortage is that of the plan which comes nearest to fitting.
TEST(Infeasible, OfRolesTogetherNamesTheSwitchAndNoMoreBytesThanAreMissing) {
  Problems problems;
  PlanRequest request = request_for("h800-8");
  request.models["actor"] = {*read_model_spec("qwen2.5-32b", problems), "qwen2.5-32b", ""};
  request.memory = MemoryAccuracy{};  // no error bar: the limit grows as the memory does
  const std::vector<std::string> words = {"actor.tp=4", "actor.dp=2", "actor.zero=1",
                                          "rollout.tp=1", "placement=colocated"};
  request.fixed = parse_settings(words, problems);
  const std::int64_t memory = request.cluster.device.memory.value;
  const auto outcome_with = [&](double factor) {
    request.cluster.device.memory.value =
        static_cast<std::int64_t>(factor * static_cast<double>(memory));
    return *make_plan(request, problems);
  };
  const auto none = outcome_with(1);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
  ASSERT_THAT(std::get<Infeasible>(none).shortages, SizeIs(1));
  const MemoryShortage shortage = std::get<Infeasible>(none).shortages.front();
  EXPECT_EQ(shortage.phase, Phase::reshard);
  EXPECT_EQ(shortage.role, Role::rollout);
  EXPECT_EQ(shortage.tensor_class, "weights");
  const double more = shortage.needed / shortage.limit - 1;
  EXPECT_LT(more, 0.15);
  EXPECT_TRUE(std::holds_alternative<Plan>(outcome_with(1 + more + 0.005)));
  EXPECT_TRUE(std::holds_alternative<Infeasible>(outcome_with(1 + more / 2)));
}

/// Logits are on the last of two stages of four ranks each.
TEST(Infeasible, NamesARankOfTheStageThatNeedsMost) {
  Problems problems;
  PlanRequest request = request_for("l40s-8");
  request.workload = *read_workload("ppo-7b-1k", problems);
  request.engine = "any";
  const std::vector<std::string> words = {"actor.pp=2",   "actor.cp=2",
                                          "actor.tp=2",   "actor.tokens=2000000",
                                          "actor.gpus=8", "actor.update_tokens=2048"};
  request.fixed = parse_settings(words, problems);
  const auto outcome = make_plan(request, problems);
  ASSERT_TRUE(problems.empty() && std::holds_alternative<Infeasible>(*outcome));
  const MemoryShortage shortage = std::get<Infeasible>(*outcome).shortages.front();
  EXPECT_EQ(shortage.tensor_class, "logits");
  EXPECT_EQ(shortage.rank, 4);
}

}  // namespace
}  // namespace tessera
