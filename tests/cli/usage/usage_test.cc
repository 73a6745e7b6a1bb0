// The command line as a user meets it: exit codes and what the messages name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "tests/cli/called.h"
#include "tests/cli/usage/usage.h"

namespace tessera {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST_F(Usage, OptionsThatDoNotReadAre64AndNameWhatIsKnown) {
  const Called objective = call(kAsk + "--objective foo");
  EXPECT_EQ(objective.code, 64);
  EXPECT_THAT(objective.out, HasSubstr("tokens_per_s_per_gpu"));
  const Called engine = call(kAsk + "--engine foo");
  EXPECT_EQ(engine.code, 64);
  EXPECT_THAT(engine.out, HasSubstr("vllm or any"));
  for (const char* risk : {"0", "0.51", "-1", "nan", "2%", "''"}) {
    for (const std::string& command : {kAsk, "explain " + plan() + " "}) {
      const Called called = call(command + "--risk " + risk);
      EXPECT_EQ(called.code, 64) << risk;
      EXPECT_THAT(called.out, HasSubstr("--risk")) << risk;
      EXPECT_THAT(called.out, HasSubstr("from 0.000001 to 0.5")) << risk;
    }
  }
  EXPECT_EQ(call(kAsk + "--fix foo").code, 64);
  EXPECT_EQ(call(kAsk + "--fix critic.tp=2").code, 64);
  EXPECT_EQ(call(kAsk + "--vary rollout.tp").code, 64);
  const Called why = call("explain " + plan() + " --why-not foo");
  EXPECT_EQ(why.code, 64);
  EXPECT_THAT(why.out, HasSubstr("--why-not"));
}

TEST_F(Usage, NumbersThatAreNoneAreRefusedWithWhatWasExpected) {
  for (const char* limit : {"nan", "inf", "0", "-1", "1e18", "80GiB"}) {
    const Called called = call(kAsk + "--memory-limit-gib " + limit);
    EXPECT_EQ(called.code, 64) << limit;
    EXPECT_THAT(called.out, HasSubstr("expected a number above 0, at most 1048576")) << limit;
    EXPECT_LT(called.out.size(), 200U);
  }
  for (const char* seed : {"-1", "99999999999999999999", "1.5", "x"}) {
    const Called called = call("simulate " + plan() + " --seed " + seed);
    EXPECT_EQ(called.code, 64) << seed;
    EXPECT_THAT(called.out, HasSubstr("expected a whole number from 0 to 18446744073709551615"));
    EXPECT_LT(called.out.size(), 200U);
  }
  const Called compared = call("compare " + plan() + " x --warm-up -1");
  EXPECT_EQ(compared.code, 64);
  EXPECT_THAT(compared.out, HasSubstr("expected a whole number from 0 to 2147483647"));
}

TEST_F(Usage, SettingsOfNothingAreRefused) {
  const Called why = call("explain " + plan() + " --why-not ''");
  EXPECT_EQ(why.code, 64);
  EXPECT_THAT(why.out, HasSubstr("--why-not: found nothing"));
  const Called placement = call(kAsk + "--fix placement=''");
  EXPECT_EQ(placement.code, 64);
  EXPECT_THAT(placement.out, HasSubstr("placement=: found nothing"));
}

TEST_F(Usage, AMeanThatNoResponseHasIsRefused) {
  const std::string import = "import " + std::string(TESSERA_SOURCE_DIR) +
                             "/examples/verl_grpo/run_qwen2_5_7b_grpo.sh --cluster h200-8 ";
  for (const char* mean : {"nan", "0", "-5", "99999"}) {
    const Called called = call(import + "--response-mean " + mean);
    EXPECT_EQ(called.code, 64) << mean;
    EXPECT_THAT(called.out, HasSubstr("at most the 4096 tokens of the longest")) << mean;
  }
}

TEST_F(Usage, HelpOfPlanAndListNameWhatTheOptionsTake) {
  const Called help = call("plan --help");
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"verl-megatron", "any", "tokens_per_s_per_gpu", "update_tokens",
                           "reference", "tessera list models"}) {
    EXPECT_THAT(help.out, HasSubstr(name));
  }
  EXPECT_THAT(help.out, Not(HasSubstr("More commands")));
  EXPECT_THAT(call("list engines").out, HasSubstr("sglang"));
  const std::string fields = call("list fields").out;
  EXPECT_THAT(fields, HasSubstr("none, selective, full"));
  EXPECT_THAT(fields, ContainsRegex("sequence_parallel  0, 1 "));
  // Both name the same fields.
  const auto listed_fields = nlohmann::json::parse(call("list --json fields").out);
  for (const auto& field : listed_fields) {
    const std::string name = field.at("field");
    EXPECT_THAT(help.out, ContainsRegex("FIELD is one of ([^.]*, )?" + name + "[,.]"));
  }
  EXPECT_THAT(call("list targets").out, HasSubstr("kubernetes"));
  EXPECT_EQ(call("list engine").code, 64);
  const auto kinds = nlohmann::json::parse(call("list --json").out);
  for (const auto& kind : kinds) {
    const Called listed = call("list --json " + kind.at("kind").get<std::string>());
    EXPECT_EQ(listed.code, 0);
    EXPECT_FALSE(nlohmann::json::parse(listed.out).empty()) << kind;
  }
}

TEST_F(Usage, EveryPresetIsListed) {
  const std::array<std::array<const char*, 2>, 4> kinds{
      {{"models", ""}, {"clusters", ".yaml"}, {"workloads", ".yaml"}, {"calibrations", ".json"}}};
  for (const auto& [kind, extension] : kinds) {
    const auto listed = nlohmann::json::parse(call(std::string("list --json ") + kind).out);
    EXPECT_EQ(listed.size(), preset_names(kind, extension).size()) << kind;
  }
}

TEST_F(Usage, TheTutorialsVerlScriptIsReadAndFits) {
  const Called called = call("import " + std::string(TESSERA_SOURCE_DIR) +
                             "/examples/verl_grpo/run_qwen2_5_7b_grpo.sh --cluster h200-8 "
                             "--response-mean 1600");
  EXPECT_EQ(called.code, 0) << called.out;
  EXPECT_THAT(called.out, HasSubstr("rollout    0-7          tp4 dp2"));
}

TEST_F(Usage, FilesThatDoNotReadAre65) {
  EXPECT_EQ(call("plan --model qwen2.5-0.5b --cluster none --workload grpo-7b-1k").code, 65);
}

// The plan of a preset with fewer or more nodes is that of a file that says so.
TEST_F(Usage, NodesAreThoseThatAreAsked) {
  const std::string ask = "plan --model qwen2.5-7b --workload grpo-7b-1k --cluster ";
  std::ifstream preset(std::string(TESSERA_SOURCE_DIR) + "/configs/clusters/h100-64.yaml");
  const std::string text{std::istreambuf_iterator<char>(preset), {}};
  const std::string own = (folder_ / "two.yaml").string();
  std::ofstream(own) << std::regex_replace(text, std::regex("\nnodes: *8"), "\nnodes: 2");
  const auto plan_of = [&](const std::string& cluster) {
    const std::string file = (folder_ / "nodes.json").string();
    EXPECT_EQ(call(ask + cluster + " -o " + file).code, 0);
    Problems problems;
    Plan plan = *read_plan(file, problems);
    plan.provenance = {};
    plan.certificate.digest.clear();
    return plan;
  };
  const Plan two = plan_of("h100-64 --nodes 2");
  EXPECT_EQ(two.cluster.nodes, 2);
  EXPECT_EQ(two, plan_of(own));
  EXPECT_EQ(plan_of("h100-64 --nodes 8"), plan_of("h100-64"));
  const Called none = call(ask + "h100-64 --nodes 0");
  EXPECT_EQ(none.code, 64);
  EXPECT_THAT(none.out, HasSubstr("--nodes"));
  const Called mixed = call(ask + "h800-h20-64 --nodes 3");
  EXPECT_EQ(mixed.code, 65);
  EXPECT_THAT(mixed.out, HasSubstr("how many nodes of each GPU type"));
  EXPECT_EQ(call("plan --from " + plan() + " --nodes 2").code, 64);
}

TEST_F(Usage, UnknownCommandsAreNamedWithTheNearest) {
  const Called called = call("simulat " + plan());
  EXPECT_EQ(called.code, 64);
  EXPECT_THAT(called.out, HasSubstr("'simulat'"));
  EXPECT_THAT(called.out, HasSubstr("did you mean 'simulate'?"));
  EXPECT_THAT(call("calibrat").out, HasSubstr("did you mean 'calibrate'?"));
}

TEST_F(Usage, WhatAnEngineLacksIsNamedWithTheEnginesThatHaveIt) {
  const Called called = call(kAsk + "--fix actor.ep=2");
  EXPECT_EQ(called.code, 2);
  EXPECT_THAT(called.out, HasSubstr("actor.ep=2 is beyond engine 'tessera'"));
  EXPECT_THAT(called.out, HasSubstr("any"));
  EXPECT_THAT(called.out, Not(HasSubstr("heads")));
}

TEST_F(Usage, SequencesLongerThanTheModelsPositionsAreRefused) {
  const fs::path workload = folder_ / "long.yaml";
  std::ofstream(workload) << "version: 1\nalgorithm: grpo\nprompts_per_step: 64\n"
                             "samples_per_prompt: 4\nprompt_tokens: 1024\n"
                             "response_tokens: {mean: 8192, cv: 0.5, max: 40000}\n"
                             "mini_batches: 1\n";
  const Called called =
      call("plan --model qwen2.5-0.5b --cluster h100-8 --workload " + workload.string());
  EXPECT_EQ(called.code, 65);
  EXPECT_THAT(called.out, HasSubstr("32768 positions"));
  EXPECT_THAT(called.out, HasSubstr("at least 41024"));
}

TEST_F(Usage, InfeasiblePlansAndAdviceAreJsonToo) {
  const Called none = call(kAsk + "--fix actor.ep=2 --json", "2>/dev/null");
  EXPECT_EQ(none.code, 2);
  const auto why = nlohmann::json::parse(none.out);
  EXPECT_FALSE(why.at("feasible").get<bool>());
  EXPECT_THAT(why.at("reasons").at(0).get<std::string>(), HasSubstr("actor.ep=2"));
  const Called advice = call("explain " + plan() + " --advice --json", "2>/dev/null");
  EXPECT_EQ(advice.code, 0);
  EXPECT_FALSE(nlohmann::json::parse(advice.out).at("ladder").empty());
}

TEST_F(Usage, WhatAnOptionWouldSilentlyLeaveOutIsRefused) {
  EXPECT_EQ(call(kAsk + "--pareto --vary rollout.tp=1,2").code, 64);
  EXPECT_EQ(call("simulate " + plan() + " --seed -1").code, 64);
}

TEST_F(Usage, SeveralQuestionsGiveOneJsonDocument) {
  const Called called =
      call("explain " + plan() + " --why-not actor.tp=1 --why-not rollout.tp=1 --advice --json",
           "2>/dev/null");
  EXPECT_EQ(called.code, 0);
  const auto facts = nlohmann::json::parse(called.out);
  EXPECT_EQ(facts.at("why_not").size(), 2U);
  EXPECT_EQ(facts.at("why_not").at(1).at("choice").at(0), "rollout.tp=1");
  EXPECT_FALSE(facts.at("advice").at("ladder").empty());
}

TEST_F(Usage, FewestGpusAreTheCertificatesUnit) {
  const Called called = call(kAsk + "--objective gpus");
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("certificate: gpus = 1 GPUs, step "));
}

TEST_F(Usage, ParetoSaysWhichNumbersOfGpusItTried) {
  const Called called = call(kAsk + "--pareto");
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("tried at most 1, 2, 3, 4, 5, 6, 7, 8 GPUs"));
}

TEST_F(Usage, ParetoMarksAndWritesTheBestByTheObjective) {
  const fs::path file = folder_ / "front.json";
  const Called called = call(kAsk + "--pareto --objective cost -o " + file.string());
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("GPU s/step"));
  EXPECT_THAT(called.out, HasSubstr("* best by cost"));
  Problems problems;
  const auto written = read_plan(file, problems);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->certificate.objective, "cost");
  const auto front =
      nlohmann::json::parse(call(kAsk + "--pareto --objective cost --json", "2>/dev/null").out);
  double least = 1e30;
  int best = 0;
  for (const auto& each : front.at("pareto")) {
    least = std::min(least, each.at("gpu_s").get<double>());
    best += each.at("best").get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(best, 1);
  EXPECT_NEAR(written->prediction.step_s * written->world_size(), least, 1e-6 * least);
}

TEST_F(Usage, SimulateRefusesAPlanWhoseReshardDigestWasChanged) {
  Problems problems;
  auto plan_read = read_plan(plan(), problems);
  ASSERT_TRUE(plan_read);
  ASSERT_FALSE(plan_read->reshard.empty());
  plan_read->reshard[0].digest = "0123456789abcdef";
  const fs::path changed = folder_ / "changed.json";
  write_plan(*plan_read, changed);
  const Called called = call("simulate " + changed.string());
  EXPECT_EQ(called.code, 65);
  EXPECT_THAT(called.out, HasSubstr("/reshard/0/digest"));
  EXPECT_THAT(called.out, HasSubstr("0123456789abcdef"));
  EXPECT_EQ(call("simulate " + plan()).code, 0);
}

TEST_F(Usage, ViolatedRulesFailTheCheckUnlessTheyAskForNothing) {
  const auto rules = [](const char* action) {
    return std::string(
               "{\"tessera_rules\": 1, \"profile\": \"test\", \"note\": \"\", \"rules\": [{") +
           "\"name\": \"short\", \"metric\": \"timing_s/step\", \"scope\": \"step\", "
           "\"operator\": \"<\", \"value\": 0.9, \"unit\": \"x predicted\", \"source\": \"none\", "
           "\"published\": \"\", "
           "\"evidence\": \"confirmed\", \"advice\": \"none\", \"action\": \"" +
           action + "\", \"enabled\": true}]}";
  };
  const fs::path file = folder_ / "rules.json";
  std::ofstream(file) << rules("stop");
  const Called stops = call("explain " + plan() + " --rules " + file.string());
  EXPECT_EQ(stops.code, 1) << stops.out;
  std::ofstream(file) << rules("warn");
  const std::string judged = "explain " + plan() + " --rules " + file.string();
  EXPECT_EQ(call(judged).code, 0);
  const fs::path metrics = folder_ / "slow.jsonl";
  std::ofstream(metrics) << "{\"step\": 1, \"data\": {\"timing_s/step\": 1e6}}\n";
  EXPECT_EQ(call(judged + " --run " + metrics.string()).code, 1);
  std::ofstream(file) << rules("none");
  EXPECT_EQ(call(judged + " --run " + metrics.string()).code, 0);
}

// Ranks read what the command has read: a file that they refuse starts none.
TEST_F(Usage, ARunFileAboveTheirLimitStartsNoRanks) {
  const fs::path file = folder_ / "large.yaml", run = folder_ / "large";
  std::ofstream(file) << "# " << std::string(std::size_t{1} << 20, 'x') << "\n";
  const Called called =
      call("run " + plan() + " -o " + run.string() + " --config " + file.string());
  EXPECT_EQ(called.code, 65);
  EXPECT_THAT(called.out, testing::HasSubstr("at most 1048576 bytes"));
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(Usage, SweepAndExportPrintTheSameFactsAsJson) {
  const fs::path rows = folder_ / "rows.csv";
  std::ofstream(rows) << "model,cluster,kind,gpus,tp,pp,dp,global_batch,prompt_tokens,mark\n"
                         "qwen2.5-0.5b,h100-8,train,8,2,1,4,64,1024,first\n";
  const auto swept =
      nlohmann::json::parse(call("sweep " + rows.string() + " --json", "2>/dev/null").out);
  ASSERT_EQ(swept.at("rows").size(), 1u);
  EXPECT_EQ(swept.at("rows")[0].at("mark"), "first");
  EXPECT_EQ(swept.at("rows")[0].at("feasible"), 1);
  EXPECT_GT(swept.at("rows")[0].at("step_s").get<double>(), 0);
  EXPECT_EQ(swept.at("feasible"), 1);
  const fs::path out = folder_ / "as-json";
  const auto exported = nlohmann::json::parse(
      call("export " + plan() + " --to torchrun --json -o " + out.string(), "2>/dev/null").out);
  EXPECT_EQ(exported.at("target"), "torchrun");
  ASSERT_FALSE(exported.at("files").empty());
  for (const auto& file : exported.at("files")) {
    EXPECT_TRUE(fs::exists(file.at("path").get<std::string>()));
  }
}

TEST(Doctor, SaysWhatScoringAndDataNeedAndWhatHappensWithoutIt) {
  const fs::path empty = fs::temp_directory_path() / ("tessera-doctor-" + std::to_string(getpid()));
  fs::create_directories(empty);
  const auto findings = [](const Called& called) {
    std::map<std::string, nlohmann::json> all;
    const auto report = nlohmann::json::parse(called.out);
    for (const auto& each : report.at("findings")) all[each.at("subject")] = each;
    return all;
  };
  auto bare = findings(call("doctor --json", "", "PATH=" + empty.string() + " "));
  for (const char* subject : {"python3", "bubblewrap"}) {
    EXPECT_EQ(bare.at(subject).at("ok"), false) << subject;
    EXPECT_THAT(bare.at(subject).at("found"), HasSubstr("missing: ")) << subject;
    EXPECT_THAT(bare.at(subject).at("found"), HasSubstr("score")) << "what needs it";
    EXPECT_THAT(bare.at(subject).at("remedy"), HasSubstr("apt install")) << subject;
  }
  // One that is there and may not be used.
  std::ofstream(empty / "bwrap") << "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.0\n";
  fs::permissions(empty / "bwrap", fs::perms::owner_all);
  bare = findings(call("doctor --json", "", "PATH=" + empty.string() + " "));
  EXPECT_THAT(bare.at("bubblewrap").at("found"), HasSubstr("bubblewrap 0.0 may not be used here"));
  auto here = findings(call("doctor --json", ""));
  EXPECT_THAT(here.at("python3").at("found"), ContainsRegex("^3\\.|^missing"));
  EXPECT_TRUE(here.contains("Parquet"));
  fs::remove_all(empty);
}

}  // namespace
}  // namespace tessera
