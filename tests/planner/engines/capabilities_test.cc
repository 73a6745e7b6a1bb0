// What plans are refused by the tables of their engines.
#include "planner/engines/engine_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
