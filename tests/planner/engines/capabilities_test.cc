// What plans are refused by the tables of their engines.
#include "planner/engines/engine_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/settings.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

TEST(Capabilities, RefuseWhatTheEngineCannotRunByPlace) {
  Plan plan;
  plan.engine = "tessera";
  RolePlan actor;
  actor.layout.ep = 2;
  actor.layout.zero = 3;
  actor.layout.dp = actor.layout.dp_shard = 4;
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

// Megatron-LM's interleaved schedule, which raises an error where micro-batches are left over.
TEST(Capabilities, RefuseVirtualStagesWhoseMicroBatchesFillNoRounds) {
  Plan plan;
  Problems read;
  plan.models["actor"].spec = read_model_spec("llama3.1-8b", read).value();
  RolePlan actor;
  actor.model = "actor";
  actor.layout = {{.pp = 4, .vpp = 2, .dp = 2}};
  actor.layout.stages = even_stages(32, 4, 2);
  const auto places = [&](const char* engine, std::int64_t mini_batch) {
    plan.engine = engine;
    plan.roles = {actor};
    plan.roles[0].batching.mini_batch = mini_batch;
    std::string text;
    for (const Problem& problem : outside_capabilities(plan, "p.json")) {
      text += problem.place + ": " + problem.expected + "; ";
    }
    return text;
  };
  const std::string refused = "/roles/0/layout/vpp: 1, or ";
  EXPECT_EQ(places("megatron", 24), "");
  EXPECT_EQ(places("megatron", 20),
            refused + "a multiple of pp = 4 sequences of a batch on a replica; ");
  EXPECT_EQ(places("verl-megatron", 20), "");
  EXPECT_EQ(places("verl-megatron", 6),
            refused + "at least pp = 4 sequences of a batch on a replica; ");
  actor.layout.vpp = 1;
  actor.layout.stages = even_stages(32, 4, 1);
  EXPECT_EQ(places("megatron", 20), "");
}

// verl has one set of Megatron's process groups for all roles of a process.
TEST(Capabilities, RefuseRolesOfVerlsMegatronWhoseGroupsDiffer) {
  Plan plan;
  plan.engine = "verl-megatron";
  Problems read;
  plan.models["actor"].spec = read_model_spec("qwen3-30b-a3b", read).value();
  RolePlan actor;
  actor.model = "actor";
  actor.ranks = {0, 1, 2, 3};
  actor.layout = {{.tp = 2, .dp = 2, .ep = 2}};
  actor.layout.sequence_parallel = true;
  RolePlan critic = actor, rollout = actor;
  critic.role = Role::critic;
  rollout.role = Role::rollout;
  rollout.layout = {{.tp = 4, .etp = 4}};
  plan.roles = {actor, rollout, critic};
  EXPECT_TRUE(outside_capabilities(plan).empty());
  critic.layout = {{.tp = 4, .ep = 1, .etp = 4}};
  plan.roles[2] = critic;
  const Problems problems = outside_capabilities(plan, "p.json");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, "/roles/2/layout");
  EXPECT_EQ(problems[0].found, "tp 4, ep 1, etp 4 of the critic");
  EXPECT_EQ(problems[0].expected, "tp 2, ep 2, etp 1 as the actor has");
  EXPECT_NE(problems[0].hint.find("mpu"), std::string::npos);
  EXPECT_TRUE(outside_capabilities(plan, "p.json", "megatron").empty());
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
  plan.models["actor"].spec = read_model_spec("deepseek-v3", read).value();
  EXPECT_TRUE(outside_capabilities(plan, "p.json").empty());
  EXPECT_EQ(outside_capabilities(plan, "p.json", "tessera").size(), 1u);
}

TEST(Capabilities, RefuseAnArchitectureByName) {
  for (const char* name :
       {"deepseek-v3", "gpt2", "qwen2.5-vl-7b", "gemma2-9b", "phi4", "olmo2-7b", "glm4.5-air",
        "seed-oss-36b", "qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3-vl-8b"}) {
    Problems read;
    Plan plan;
    plan.engine = "tessera";
    plan.models["actor"].spec = read_model_spec(name, read).value();
    const Problems problems = outside_capabilities(plan, "p.json");
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].place, "/models/actor/spec/family");
    EXPECT_EQ(problems[0].expected,
              "llama, mistral, qwen2, qwen3, mixtral, qwen2_moe or qwen3_moe");
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

// verl's Megatron holds 16-bit weights; GPT-2's checkpoint is of fp32.
TEST(Capabilities, AModelOfAnotherTypeIsRefusedBeforeItIsPlanned) {
  PlanRequest request =
      request_of(llama_8b(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  request.engine = "verl-megatron";
  request.models.at("actor").spec.dtype = DType::fp32;
  Problems problems;
  EXPECT_FALSE(make_plan(request, problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, "torch_dtype");
  EXPECT_EQ(problems[0].found, "fp32");
  EXPECT_EQ(problems[0].expected, "bf16 or fp16");
  request.models.at("actor").spec.dtype = DType::bf16;
  problems.clear();
  EXPECT_TRUE(make_plan(request, problems));
}

/// A plan of Tessera's own engine for qwen3-30b-a3b, of an actor and a rollout.
Plan expert_plan(const ParallelLayout& actor, const ParallelLayout& rollout) {
  Problems read;
  Plan plan;
  plan.engine = "tessera";
  plan.models["actor"].spec = read_model_spec("qwen3-30b-a3b", read).value();
  plan.roles = {RolePlan{}, RolePlan{}};
  plan.roles[0].layout = actor;
  plan.roles[1].role = Role::rollout;
  plan.roles[1].layout = rollout;
  for (RolePlan& role : plan.roles) role.model = "actor";
  return plan;
}

TEST(Capabilities, LayersOfMultiTokenPredictionAreMegatronsAndOfServersThatDraft) {
  Plan plan = expert_plan({{.dp = 4}}, {{.dp = 4}});
  ModelSpec& model = plan.models.at("actor").spec;
  const auto places = [&](const char* engine) {
    std::string all;
    for (const Problem& problem : outside_capabilities(plan, "p.json", engine)) {
      if (problem.place.ends_with("/mtp")) all += problem.place + " ";
    }
    return all;
  };
  model.mtp_layers = 1;
  plan.roles[0].mtp = MtpUse::trained;
  plan.roles[1].mtp = MtpUse::held;
  EXPECT_EQ(places("tessera"), "/roles/0/mtp /roles/1/mtp ");
  EXPECT_EQ(places("verl"), "/roles/0/mtp ");
  EXPECT_EQ(places("verl-megatron"), "");
  EXPECT_EQ(places("any"), "");
  model.mtp_layers = 0;
  EXPECT_EQ(places("verl-megatron"), "/roles/0/mtp ");
}

TEST(Capabilities, ExpertsOfOurOwnEngineLieAsItRunsThem) {
  const ParallelLayout whole{{.dp = 4}};
  const auto refused_at = [&](const ParallelLayout& actor, const ParallelLayout& rollout) {
    const Problems problems = outside_capabilities(expert_plan(actor, rollout), "p.json");
    return problems.size() == 1 ? problems[0].place + " expects " + problems[0].expected
                                : std::to_string(problems.size());
  };
  for (const ParallelLayout& trained :
       {ParallelLayout{{.tp = 2, .dp = 2, .etp = 2}},
        ParallelLayout{{.tp = 2, .dp = 2, .dp_shard = 2, .etp = 2}, 3},
        ParallelLayout{{.dp = 4, .ep = 4}}, ParallelLayout{{.dp = 4, .dp_shard = 4, .ep = 4}, 3},
        ParallelLayout{{.dp = 4, .dp_shard = 2, .ep = 2}, 3}, ParallelLayout{{.dp = 2, .ep = 2}, 1},
        ParallelLayout{{.tp = 2, .dp = 2, .ep = 4}, 0, {}, true},
        ParallelLayout{{.tp = 2, .dp = 2}, 0, {}, true},
        ParallelLayout{{.tp = 4, .ep = 2}, 0, {}, true},
        ParallelLayout{{.tp = 4, .etp = 2}, 0, {}, true},
        ParallelLayout{{.tp = 4, .dp = 2, .ep = 2, .etp = 2}, 0, {}, true},
        ParallelLayout{{.tp = 4, .dp = 2, .ep = 4, .etp = 2}, 1, {}, true},
        ParallelLayout{{.tp = 4, .dp = 2, .dp_shard = 2, .ep = 4, .etp = 2}, 3, {}, true},
        ParallelLayout{{.tp = 2, .pp = 2, .dp = 2, .ep = 2, .etp = 2}}}) {
    EXPECT_EQ(refused_at(trained, {{.tp = 2, .dp = 2, .etp = 2}}), "0") << describe(trained);
  }
  EXPECT_EQ(refused_at({{.tp = 2, .dp = 2}}, whole), "/roles/0/layout/etp expects 2");
  EXPECT_EQ(refused_at({{.tp = 2, .dp = 2, .ep = 2}}, whole), "/roles/0/layout/ep expects 1")
      << "whole experts without sequence parallelism";
  EXPECT_EQ(refused_at({{.tp = 4, .etp = 2}}, whole), "/roles/0/layout/etp expects 4");
  EXPECT_EQ(refused_at({{.tp = 4, .dp = 2, .etp = 2}, 1, {}, true}, whole),
            "/roles/0/layout/etp expects 4")
      << "two of the ranks that share states hold the same experts";
  EXPECT_EQ(refused_at({{.dp = 4, .dp_shard = 4, .ep = 2}, 3}, whole),
            "/roles/0/layout/ep expects 1");
  EXPECT_EQ(refused_at({{.dp = 4, .ep = 2}, 1}, whole), "/roles/0/layout/ep expects 1");
  for (const ParallelLayout& served :
       {ParallelLayout{{.dp = 4, .ep = 4}}, ParallelLayout{{.dp = 4, .ep = 2}},
        ParallelLayout{{.tp = 2, .dp = 2, .ep = 2, .etp = 2}},
        ParallelLayout{{.tp = 2, .dp = 2, .ep = 2}}, ParallelLayout{{.tp = 2, .dp = 2, .ep = 4}},
        ParallelLayout{{.tp = 4}}, ParallelLayout{{.tp = 4, .ep = 2}},
        ParallelLayout{{.tp = 4, .etp = 2}}, ParallelLayout{{.tp = 4, .ep = 2, .etp = 2}},
        ParallelLayout{{.tp = 4, .dp = 3, .ep = 2, .etp = 2}}}) {
    EXPECT_EQ(refused_at(whole, served), "0") << describe(served);
  }
  EXPECT_EQ(refused_at(whole, {{.tp = 4, .dp = 3, .ep = 3, .etp = 2}}),
            "/roles/1/layout/ep expects 1")
      << "six ranks hold all experts, a replica and a half";

  Plan windowed = expert_plan(whole, whole);
  ModelSpec& spec = windowed.models["actor"].spec;
  spec.sliding_window = 1024;
  EXPECT_TRUE(outside_capabilities(windowed, "p.json").empty());
  spec.full_attention_layers = {0, 2};
  ASSERT_EQ(outside_capabilities(windowed, "p.json").size(), 1u);
  EXPECT_NE(outside_capabilities(windowed, "p.json")[0].found.find("some layers"),
            std::string::npos);
}

/// What the search finds for our own engine is what the engine runs, experts dealt out or not.
TEST(Capabilities, PlansWithExpertsForOurOwnEngineAreWhatItRuns) {
  Problems read;
  PlanRequest request =
      request_of(tiny_model(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  request.engine = "tessera";
  request.models.at("actor").spec = read_model_spec("qwen3-30b-a3b", read).value();
  for (const char* fixed :
       {"", "actor.ep=4", "actor.ep=8 actor.zero=3", "actor.tp=2 actor.ep=2 actor.etp=1",
        "rollout.ep=8", "actor.ep=4 rollout.tp=2 rollout.ep=2 rollout.etp=1",
        "rollout.ep=2 rollout.tp=2", "actor.tp=4 actor.ep=2 actor.etp=2 actor.zero=0",
        "actor.tp=4 actor.ep=4 actor.etp=2", "rollout.tp=4 rollout.ep=2 rollout.etp=2",
        "rollout.tp=4 rollout.ep=1 rollout.etp=2"}) {
    PlanRequest asked = request;
    Problems problems;
    std::istringstream words(fixed);
    std::vector<std::string> settings{std::istream_iterator<std::string>(words), {}};
    asked.fixed = parse_settings(settings, problems);
    const auto plan = make_plan(asked, problems);
    ASSERT_TRUE(plan) << fixed << (problems.empty() ? "" : to_string(problems.front()));
    ASSERT_TRUE(std::holds_alternative<Plan>(*plan)) << fixed;
    EXPECT_TRUE(outside_capabilities(std::get<Plan>(*plan), "p.json").empty()) << fixed;
  }
}

// transformers has a class for each, which verl's FSDP engine wraps.
TEST(Capabilities, EveryFamilyIsPlannedForVerl) {
  for (const char* name : {"gemma2-9b", "gemma3-1b", "phi4", "olmo2-7b", "glm4.5-air",
                           "seed-oss-36b", "qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3.5-35b-a3b",
                           "qwen3-vl-8b", "qwen3-vl-30b-a3b", "gemma3-12b"}) {
    SCOPED_TRACE(name);
    Problems problems;
    PlanRequest request =
        request_of(tiny_model(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 8, 80));
    request.models.at("actor").spec = read_model_spec(name, problems).value();
    request.engine = "verl";
    const auto made = make_plan(request, problems);
    ASSERT_TRUE(made && std::holds_alternative<Plan>(*made)) << problems.size();
    const Plan& plan = std::get<Plan>(*made);
    EXPECT_GT(plan.prediction.step_s, 0);
    EXPECT_TRUE(outside_capabilities(plan, "p.json").empty());
  }
}

// Classes that transformers has without flash attention, or whose states span a packed row: verl's
// FSDP engine packs sequences for flash attention.
TEST(Capabilities, VerlRefusesClassesThatDoNotRunOnPackedSequences) {
  for (const auto& [name, why] : std::map<std::string, std::string>{
           {"llama4-scout",
            "llama4, which cannot run on packed sequences: transformers' class has "
            "no flash attention (sdpa and flex attention alone)"},
           {"deepseek-v3.2", "deepseek_v32, which"},
           {"glm5", "glm_moe_dsa, which"},
           {"deepseek-v4-flash", "transformers' class has eager attention alone"},
           {"minimax-m1", "its lightning attention does not tell apart sequences"}}) {
    Problems problems;
    const ModelSpec model = *read_model_spec(name, problems);
    refuse_model(engine_named("verl"), {.spec = model}, "m", "", problems);
    ASSERT_EQ(problems.size(), 1U) << name;
    EXPECT_NE(problems[0].found.find(why), std::string::npos) << problems[0].found;
    refuse_model(engine_named("vllm"), {.spec = model}, "m", "", problems);
    EXPECT_EQ(problems.size(), 1U) << name;
  }
}

// A rank has whole groups of DeepSeek-V4's heads: its output's first projection is one matrix a
// group.
TEST(Capabilities, TensorParallelRanksHaveWholeGroupsOfHeads) {
  Problems problems;
  const ModelSpec model = *read_model_spec("deepseek-v4-flash", problems);
  for (const char* const engine : {"any", "verl-megatron", "vllm"}) {
    const auto refused = [&](int tp) {
      ParallelLayout layout{{.tp = tp}};
      layout.stages = even_stages(model.layers, 1);
      const Role role = std::string(engine) == "vllm" ? Role::rollout : Role::actor;
      const Problems all = outside_capabilities(engine_named(engine), model, role, layout);
      return std::any_of(all.begin(), all.end(), [](const Problem& each) {
        return each.expected.find("8 groups of heads") != std::string::npos;
      });
    };
    EXPECT_FALSE(refused(8)) << engine;
    EXPECT_TRUE(refused(16)) << engine;
  }
}

// verl 0.9.1's registry of Megatron models, and what Megatron-LM's arguments can say.
TEST(Capabilities, MegatronRefusesFamiliesThatItHasNot) {
  const auto refused = [](const char* engine, const char* name) {
    Problems problems;
    refuse_model(engine_named(engine), {.spec = *read_model_spec(name, problems)}, "m", "",
                 problems);
    return !problems.empty();
  };
  EXPECT_TRUE(refused("verl-megatron", "gemma2-9b"));
  EXPECT_TRUE(refused("verl-megatron", "qwen3-next-80b-a3b"));
  EXPECT_FALSE(refused("verl-megatron", "qwen3.5-35b-a3b"));
  EXPECT_FALSE(refused("verl-megatron", "glm4.5"));
  EXPECT_FALSE(refused("verl-megatron", "deepseek-v4-flash"));
  EXPECT_TRUE(refused("megatron", "deepseek-v4-flash"));
  EXPECT_TRUE(refused("megatron", "qwen3.5-35b-a3b"));
  EXPECT_TRUE(refused("megatron", "qwen2.5-vl-7b"));
  EXPECT_FALSE(refused("megatron", "glm4.5"));
  EXPECT_FALSE(refused("megatron", "phi4"));
}

// A ring passes keys and values on, and no state; Ulysses deals 16 key heads out.
TEST(Capabilities, LinearAttentionHasNoRing) {
  Problems problems;
  const ModelSpec model = *read_model_spec("qwen3-next-80b-a3b", problems);
  const auto refused = [&](int cp, bool ulysses) {
    ParallelLayout layout{{.cp = cp, .dp = 8, .dp_shard = 8}};
    layout.ulysses = ulysses;
    return !outside_capabilities(engine_named("verl"), model, Role::actor, layout).empty();
  };
  EXPECT_TRUE(refused(2, false));
  EXPECT_FALSE(refused(2, true));
  EXPECT_FALSE(refused(16, true));
  EXPECT_TRUE(refused(32, true));
}

}  // namespace
}  // namespace tessera
