#include "planner/request/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "planner/engines/engine_check.h"
#include "planner/request/request.h"
#include "planner/engines/engine.h"
#include "tests/planner/search/sample_requests.h"
#include "planner/request/candidate.h"
#include "planner/space/layout_space.h"
#include "planner/request/solution.h"
#include "planner/request/describe.h"
#include "planner/request/plan_request.h"
#include "planner/explain/planner.h"

namespace tessera {
namespace {

FixedSettings parsed(std::vector<std::string> words, Problems& problems) {
  return parse_settings(words, problems);
}

TEST(Settings, ReadWhatTheyWrite) {
  Problems problems;
  const std::vector<std::string> words = {"actor.tp=2", "actor.zero=0", "rollout.max_sequences=64",
                                          "placement=actor|critic"};
  const FixedSettings settings = parse_settings(words, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(words_of(settings), words);
  EXPECT_EQ(settings.find(Role::actor, Field::tp), 2);
  EXPECT_TRUE(settings.allows(Role::actor, Field::pp, 7));
  EXPECT_FALSE(settings.allows(Role::actor, Field::tp, 4));
}

TEST(Settings, RefuseEveryBadWordAtOnceWithTheNearestName) {
  Problems problems;
  parsed({"acotr.tp=2", "actor.token=2", "actor.tp=two", "actor.tp=0", "rollout.zero=1", "tp=2",
          "actor.pp=2", "actor.pp=4"},
         problems);
  ASSERT_EQ(problems.size(), 7);
  EXPECT_NE(problems[0].hint.find("actor"), std::string::npos);
  EXPECT_NE(problems[1].hint.find("tokens"), std::string::npos);
}

TEST(Settings, ListTheFieldsOfARoleThatLacksOne) {
  Problems problems;
  parsed({"rollout.tokens=1", "rollout.zero=1", "reference.recompute=full"}, problems);
  ASSERT_EQ(problems.size(), 3U);
  const std::string rollout = "gpus, tp, pp, dp, max_sequences, ep, etp, offload, gpu";
  EXPECT_EQ(problems[0].expected, rollout);
  EXPECT_EQ(problems[1].expected, rollout);
  EXPECT_NE(problems[2].expected.find("tokens, cp,"), std::string::npos) << problems[2].expected;
}

TEST(Settings, ShardRolesThatAreNotTrainedWhollyOrNotAtAll) {
  Problems problems;
  parsed({"reference.zero=3", "reward.zero=0", "actor.sequence_parallel=1"}, problems);
  EXPECT_TRUE(problems.empty());
  parsed({"reference.zero=1", "actor.sequence_parallel=2", "rollout.sequence_parallel=1"},
         problems);
  ASSERT_EQ(problems.size(), 3);
  EXPECT_NE(problems[0].expected.find("0 or 3"), std::string::npos);
  EXPECT_EQ(problems[1].expected, "0 or 1");
}

TEST(Candidates, ShardTheReferenceAndScatterSequencesWhereAsked) {
  PlanRequest request =
      request_of(tiny_model(), workload_of("grpo", KlPlace::loss, false), cluster_of(8, 1, 80));
  Problems problems;
  const Capabilities& table = engine_named("tessera").capabilities;
  request.fixed = parsed({"reference.zero=3", "actor.sequence_parallel=1"}, problems);
  const auto references = enumerate_candidates(request, table, Role::reference, 8);
  const auto actors = enumerate_candidates(request, table, Role::actor, 8);
  ASSERT_FALSE(references.empty());
  ASSERT_FALSE(actors.empty());
  for (const Candidate& c : references) EXPECT_EQ(c.zero, 3);
  for (const Candidate& c : actors) EXPECT_TRUE(c.sequence_parallel && c.tp > 1);
  request.fixed = parsed({"reference.zero=0", "actor.sequence_parallel=0"}, problems);
  for (const Candidate& c : enumerate_candidates(request, table, Role::reference, 8)) {
    EXPECT_EQ(c.zero, 0);
  }
  for (const Candidate& c : enumerate_candidates(request, table, Role::actor, 8)) {
    EXPECT_FALSE(c.sequence_parallel);
  }
}

TEST(Candidates, ObeySettingsEngineAndBatch) {
  PlanRequest request =
      request_of(tiny_model(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  Problems problems;
  const Capabilities& table = engine_named("tessera").capabilities;
  for (const Candidate& c : enumerate_candidates(request, table, Role::actor, 8)) {
    EXPECT_EQ(c.tp * c.pp * c.dp, 8);
    EXPECT_LE(c.tp, 4);  // heads
    EXPECT_LE(c.pp, 2);  // layers
    EXPECT_EQ(16 % c.dp, 0);
    EXPECT_TRUE(c.zero == 0 || c.dp > 1);
    EXPECT_EQ(c.vpp, 1);  // two layers
    EXPECT_EQ(c.dp_shard > 1, c.zero == 3);
    EXPECT_EQ(c.sequence_parallel, c.tp > 1);
    EXPECT_EQ(c.cp, 1);  // short sequences
    EXPECT_EQ(c.offload.parameters, c.offload.gradients);
  }
  for (const Candidate& c : enumerate_candidates(request, table, Role::rollout, 8)) {
    EXPECT_EQ(c.pp, 1);
  }
  request.fixed = parsed({"rollout.offload=all"}, problems);
  const auto unmapped = enumerate_candidates(request, table, Role::rollout, 8);
  EXPECT_FALSE(unmapped.empty());
  for (const Candidate& c : unmapped) EXPECT_TRUE(c.offload.parameters);
  request.fixed = parsed({"actor.tp=2", "actor.pp=2", "actor.tokens=100"}, problems);
  const auto fixed = enumerate_candidates(request, table, Role::actor, 8);
  // ZeRO 0, 1, 2 and FSDP; recompute; nothing, the optimizer or everything offloaded.
  std::set<std::pair<int, int>> sharding;
  for (const Candidate& c : fixed) sharding.insert({c.zero, c.dp_shard});
  EXPECT_EQ(sharding, (std::set<std::pair<int, int>>{{0, 1}, {1, 1}, {2, 1}, {3, 2}}));
  ASSERT_EQ(fixed.size(), sharding.size() * 3 * 3);
  EXPECT_EQ(fixed[0].tokens, 100);
  request.fixed =
      parsed({"actor.tp=2", "actor.pp=2", "actor.zero=2", "actor.offload=optimizer"}, problems);
  for (const Candidate& c : enumerate_candidates(request, table, Role::actor, 8)) {
    EXPECT_EQ(c.zero, 2);
    EXPECT_TRUE(c.offload.optimizer);
  }
  EXPECT_FALSE(enumerate_candidates(request, table, Role::actor, 8).empty());
  request.fixed = parsed({"actor.gpus=4"}, problems);
  EXPECT_TRUE(enumerate_candidates(request, table, Role::actor, 8).empty());
  EXPECT_FALSE(enumerate_candidates(request, table, Role::actor, 4).empty());
}

TEST(Candidates, LimitTheTokensOfCallsThatTrainApart) {
  PlanRequest request =
      request_of(tiny_model(), workload_of("ppo", KlPlace::none, false), cluster_of(8, 1, 80));
  Problems problems;
  const auto limits = [&](const char* engine, Role role, std::vector<std::string> words) {
    request.fixed = parsed(std::move(words), problems);
    std::set<std::pair<bool, bool>> kinds;  // calls that train take less, or more
    for (const Candidate& c :
         candidates_of(enumerate_layouts(request, engine_named(engine).capabilities, role, 8))) {
      kinds.insert({c.update_tokens > 0 && c.update_tokens<c.tokens, c.update_tokens> c.tokens});
    }
    return kinds;
  };
  const std::set<std::pair<bool, bool>> all{{false, false}, {false, true}, {true, false}};
  const std::set<std::pair<bool, bool>> alike{{false, false}}, less{{true, false}};
  EXPECT_EQ(limits("tessera", Role::actor, {}), all);
  EXPECT_EQ(limits("tessera", Role::critic, {}), all);
  EXPECT_EQ(limits("tessera", Role::reference, {}), alike);
  EXPECT_EQ(limits("verl", Role::actor, {}), all);
  EXPECT_EQ(limits("verl", Role::critic, {}), alike);  // has one limit
  EXPECT_EQ(limits("tessera", Role::actor, {"actor.tokens=64"}), alike);
  EXPECT_EQ(limits("tessera", Role::actor, {"actor.tokens=64", "actor.update_tokens=32"}), less);
  EXPECT_TRUE(
      limits("verl", Role::critic, {"critic.tokens=64", "critic.update_tokens=32"}).empty());
}

TEST(Candidates, NeverPutATensorParallelGroupAcrossNodes) {
  const PlanRequest request =
      request_of(llama_8b(), workload_of("grpo", KlPlace::none, false), cluster_of(4, 4, 80));
  for (const Candidate& c :
       enumerate_candidates(request, engine_named("tessera").capabilities, Role::actor, 16)) {
    EXPECT_EQ(4 % c.tp, 0);
  }
}

TEST(Capabilities, RefuseWhatTheEngineCannotRunByPlace) {
  Plan plan;
  plan.engine = "tessera";
  RolePlan actor;
  actor.layout.ep = 2;
  actor.layout.zero = 3;
  actor.layout.dp_shard = 4;
  actor.recompute = Recompute::full;
  actor.offload = {.parameters = true, .optimizer = true};
  RolePlan rollout;
  rollout.role = Role::rollout;
  rollout.layout.pp = 2;
  plan.roles = {actor, rollout};
  plan.reshard.push_back({});
  plan.reshard[0].keep = false;  // tessera's rollout can be unmapped
  const Problems problems = outside_capabilities(plan, "p.json");
  ASSERT_EQ(problems.size(), 2);
  EXPECT_EQ(problems[0].place, "/roles/0/layout/ep");
  EXPECT_EQ(problems[1].place, "/roles/1/layout/pp");
  plan.engine = "tesera";
  EXPECT_EQ(outside_capabilities(plan).size(), 1);
  plan.engine = "tessera";
  plan.roles = {RolePlan{}};
  plan.reshard.clear();
  EXPECT_TRUE(outside_capabilities(plan).empty());
}

TEST(Engines, AreSortedByNameAndAllMayBeNamedByAPlan) {
  std::vector<std::string> named, rules, known = engine_names();
  for (const Engine& engine : every_engine()) named.push_back(engine.name);
  for (const EngineRule& rule : engine_rules()) rules.emplace_back(rule.name);
  known.emplace_back(kAnyEngine);
  std::sort(known.begin(), known.end());
  EXPECT_EQ(named, known);
  EXPECT_EQ(rules, known);
}

TEST(Capabilities, ARunJudgesAPlanByTesserasOwnTable) {
  Plan plan;
  plan.engine = "vllm";  // whose table knows every family
  Problems read;
  plan.models["actor"].spec = read_model_spec("mixtral-8x7b", read).value();
  EXPECT_TRUE(outside_capabilities(plan, "p.json").empty());
  EXPECT_EQ(outside_capabilities(plan, "p.json", "tessera").size(), 1u);
}

TEST(Capabilities, RefuseAnArchitectureByName) {
  for (const char* name : {"mixtral-8x7b", "deepseek-v3", "gpt2", "qwen2.5-vl-7b"}) {
    Problems read;
    Plan plan;
    plan.engine = "tessera";
    plan.models["actor"].spec = read_model_spec(name, read).value();
    const Problems problems = outside_capabilities(plan, "p.json");
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].place, "/models/actor/spec/family");
    EXPECT_EQ(problems[0].expected, "llama, mistral, qwen2 or qwen3");
    EXPECT_NE(problems[0].found.find(name_of(plan.models["actor"].spec.family)), std::string::npos);

    PlanRequest request =
        request_of(tiny_model(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
    request.models.at("actor").spec = plan.models["actor"].spec;
    Problems refused;
    EXPECT_FALSE(make_plan(request, refused));
    ASSERT_FALSE(refused.empty());
    EXPECT_EQ(refused[0].hint, "engine 'tessera' cannot run this architecture");
  }
}

TEST(Settings, OfASolutionFixEveryLayoutOfIt) {
  Solution solution;
  solution.placement = {{Role::actor, Role::rollout}, {Role::reference}};
  solution.choice[Role::actor] = {.role = Role::actor,
                                  .gpus = 32,
                                  .tp = 4,
                                  .pp = 2,
                                  .dp = 4,
                                  .zero = 3,
                                  .tokens = 4096,
                                  .dp_shard = 2,
                                  .recompute = Recompute::full,
                                  .offload = {.optimizer = true}};
  solution.choice[Role::rollout] = {.role = Role::rollout,
                                    .gpus = 32,
                                    .tp = 2,
                                    .dp = 16,
                                    .max_sequences = 64,
                                    .offload = {.parameters = true}};
  solution.choice[Role::reference] = {
      .role = Role::reference, .gpus = 4, .dp = 2, .tokens = 8192, .cp = 2, .ulysses = true};
  Problems problems;
  const FixedSettings fixed = parse_settings(settings_of(solution), problems);
  ASSERT_TRUE(problems.empty()) << to_string(problems[0]);
  EXPECT_EQ(fixed.placement, "actor | reference");
  const std::map<std::pair<Role, Field>, std::int64_t> named = {
      {{Role::actor, Field::dp_shard}, 2},      {{Role::actor, Field::zero}, 3},
      {{Role::actor, Field::recompute}, 2},     {{Role::actor, Field::offload}, 1},
      {{Role::actor, Field::tokens}, 4096},     {{Role::rollout, Field::max_sequences}, 64},
      {{Role::rollout, Field::offload}, 2},     {{Role::reference, Field::cp}, 2},
      {{Role::reference, Field::context}, 1},   {{Role::reference, Field::head_layers}, 0},
      {{Role::reference, Field::tokens}, 8192}, {{Role::actor, Field::vpp}, 1}};
  for (const auto& [field, value] : named) {
    EXPECT_EQ(fixed.find(field.first, field.second), value) << name_of(field.second);
  }
  EXPECT_FALSE(fixed.find(Role::reference, Field::zero));
  EXPECT_FALSE(fixed.find(Role::rollout, Field::tokens));
}

}  // namespace
}  // namespace tessera
