// The command line as a user meets it: exit codes and what the messages name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/reshard_mode.h"
#include "tests/cli/called.h"

namespace tessera {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

// A plan file for all tests, made once.
class Usage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("tessera-usage-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    ASSERT_EQ(call(kAsk + "-o " + plan()).code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }
  static std::string plan() { return (folder_ / "plan.json").string(); }
  inline static fs::path folder_;
};

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

TEST_F(Usage, ExplainSaysWhatLimitsThePlanNotThePlanAgain) {
  const Called called = call("explain " + plan());
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("time: "));
  EXPECT_THAT(called.out, HasSubstr("memory: the fullest rank holds "));
  EXPECT_THAT(called.out, HasSubstr("margin: "));
  EXPECT_THAT(called.out, Not(HasSubstr("tokens per micro-batch")));
  const auto facts = nlohmann::json::parse(call("explain " + plan() + " --json").out);
  EXPECT_GT(facts.at("longest_share").get<double>(), 0);
  EXPECT_GT(facts.at("fullest_bytes").at("weights").get<std::int64_t>(), 0);
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

// An edit of a certified plan, written beside it.
class EditedPlan : public Usage {
 protected:
  static std::string edited(const std::string& name, const std::function<void(Plan&)>& edit) {
    Problems problems;
    auto plan_read = read_plan(plan(), problems);
    EXPECT_TRUE(plan_read);
    edit(*plan_read);
    const fs::path file = folder_ / name;
    write_plan(*plan_read, file);
    return file.string();
  }
};

TEST_F(EditedPlan, FromTheSearchKeepsItsCertificate) {
  EXPECT_THAT(call("explain " + plan()).out, HasSubstr("proven best of the space"));
  const std::string labelled = edited("labelled.json", [](Plan& each) {
    each.environment.push_back({"NCCL_DEBUG", "INFO", "to see"});
    each.models.at("actor").path = "/models/here";
  });
  const Called called = call("explain " + labelled);
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("proven best of the space"));
}

TEST_F(EditedPlan, WithAnotherTimeIsPricedAgainAndFailsTheCheck) {
  const std::string file =
      edited("step.json", [](Plan& each) { each.prediction.step_s = Seconds{1}; });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 1);
  EXPECT_THAT(called.out, HasSubstr("edited since its search"));
  EXPECT_THAT(called.out, HasSubstr("step_s"));
  EXPECT_THAT(called.out, HasSubstr("the file says            1 s"));
  EXPECT_THAT(called.out, HasSubstr("certificate: none"));
  EXPECT_THAT(called.out, Not(HasSubstr("proven best")));
  const Called json = call("explain " + file + " --json", "2>/dev/null");
  EXPECT_EQ(json.code, 1);
  EXPECT_THAT(json.out, HasSubstr("\"certified\": false"));
}

TEST_F(EditedPlan, ThatNoLongerFitsIs2WhateverIsAskedOfIt) {
  const std::string file =
      edited("memory.json", [](Plan& each) { each.cluster.device.memory = from_gib(10); });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 2);
  EXPECT_THAT(called.out, HasSubstr("does not fit: "));
  EXPECT_THAT(called.out, Not(HasSubstr("proven best")));
  const Called exported =
      call("export " + file + " --to torchrun -o " + (folder_ / "exported").string());
  EXPECT_EQ(exported.code, 2);
  EXPECT_THAT(exported.out, HasSubstr("warning: does not fit: "));
  EXPECT_TRUE(fs::exists(folder_ / "exported"));
  const Called simulated = call("simulate " + file);
  EXPECT_EQ(simulated.code, 2);
  EXPECT_THAT(simulated.out, HasSubstr("warning: does not fit: "));
  const Called clean =
      call("export " + plan() + " --to torchrun -o " + (folder_ / "exported").string());
  EXPECT_EQ(clean.code, 0);
  EXPECT_THAT(clean.out, Not(HasSubstr("warning")));
}

TEST_F(EditedPlan, WithoutASearchSaysSoAndAgreesWithItsOwnFigures) {
  const std::string file = edited("unsearched.json", [](Plan& each) { each.certificate = {}; });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 0) << called.out;  // the search's figures are the cost model's
  EXPECT_THAT(called.out, HasSubstr("not from a search"));
  EXPECT_THAT(called.out, HasSubstr("the file's times, peak and bytes are those computed"));
  EXPECT_THAT(called.out, HasSubstr("certificate: none"));
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

TEST_F(EditedPlan, RulesOnARunOfAnotherPlanAreRefused) {
  const fs::path run = folder_ / "run";
  fs::create_directories(run);
  std::ofstream(run / "metrics.jsonl") << "{\"step\": 1, \"data\": {\"timing_s/step\": 2.0}}\n";
  const std::string words =
      "explain " + plan() + " --rules published-practice --run " + run.string();
  fs::copy_file(plan(), run / "plan.json");
  EXPECT_EQ(call(words).code, 0);
  fs::remove(run / "plan.json");
  fs::rename(edited("other.json", [](Plan& each) { each.roles[0].recompute = Recompute::full; }),
             run / "plan.json");
  const Called other = call(words);
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("a run of another plan"));
}

TEST_F(EditedPlan, BytesAndDigestsOfASwitchAreCheckedLikeTimes) {
  const std::string bytes = edited("bytes.json", [](Plan& each) {
    each.certificate = {};
    each.reshard[0].bytes_received += Bytes{1};
  });
  const Called counted = call("explain " + bytes);
  EXPECT_EQ(counted.code, 1);
  EXPECT_THAT(counted.out, HasSubstr("reshard.0.bytes_received"));
  const std::string digest = edited("digest.json", [](Plan& each) {
    each.certificate = {};
    each.reshard[0].digest = "0123456789abcdef";
  });
  const Called called = call("explain " + digest);
  EXPECT_EQ(called.code, 65);
  EXPECT_THAT(called.out, HasSubstr("/reshard/0/digest"));
}

TEST_F(EditedPlan, ForAnUnknownEngineIsRefusedByEveryCommand) {
  const std::string file = edited("engine.json", [](Plan& each) { each.engine = "verll"; });
  for (const std::string command : {"explain ", "simulate "}) {
    const Called called = call(command + file);
    EXPECT_EQ(called.code, 65) << command;
    EXPECT_THAT(called.out, HasSubstr("did you mean 'verl'?"));
  }
}

TEST_F(Usage, ExplainTellsTheMemoryOfEveryRoleAndPhase) {
  Problems problems;
  const auto read = read_plan(plan(), problems);
  ASSERT_TRUE(read);
  const auto told = nlohmann::json::parse(call("explain --json " + plan(), "2>/dev/null").out);
  const auto& prediction = told.at("prediction");
  EXPECT_DOUBLE_EQ(prediction.at("step_s").get<double>(), read->prediction.step_s);
  for (const RolePlan& role : read->roles) {
    ASSERT_FALSE(role.memory.empty());
    for (const auto& [phase, use] : role.memory) {
      std::int64_t total = 0;
      for (const auto& bytes : prediction.at("memory")
                                   .at(std::string(name_of(role.role)))
                                   .at(std::string(name_of(phase)))) {
        total += bytes.get<std::int64_t>();
      }
      EXPECT_EQ(total, use.total()) << name_of(role.role) << " " << name_of(phase);
    }
  }
  EXPECT_THAT(call("explain " + plan()).out, HasSubstr("by role: actor "));
}

TEST_F(Usage, ExplainPrintsTheAccountOfMemoryOfARank) {
  Problems problems;
  const auto read = read_plan(plan(), problems);
  ASSERT_TRUE(read);
  const std::string words = "explain " + plan() + " --memory ";
  const Called told = call(words);
  EXPECT_EQ(told.code, 0) << told.out;
  EXPECT_THAT(told.out, HasSubstr("the fullest rank in its fullest phase"));
  for (const char* row : {"weights", "reserve", "sum", "limit", "left", "update_actor"}) {
    EXPECT_THAT(told.out, HasSubstr(std::string("\n  ") + row));
  }
  const auto account = nlohmann::json::parse(call(words + "--json", "2>/dev/null").out);
  EXPECT_EQ(account.at("peak_bytes"), read->prediction.peak_bytes.value);
  for (const auto& phase : account.at("phases")) {
    auto sum = phase.at("reserve_bytes").get<std::int64_t>();
    for (const auto& role : phase.at("roles")) {
      for (const auto& bytes : role.at("classes")) sum += bytes.get<std::int64_t>();
    }
    EXPECT_EQ(sum, phase.at("sum_bytes"));
    EXPECT_EQ(sum + phase.at("left_bytes").get<std::int64_t>(), account.at("limit_bytes"));
    if (phase.at("phase") == account.at("phase")) {
      EXPECT_EQ(sum, account.at("peak_bytes"));
    }
  }
  const auto one = nlohmann::json::parse(
      call(words + "--rank 3 --phase update_actor --json", "2>/dev/null").out);
  EXPECT_EQ(one.at("rank"), 3);
  EXPECT_EQ(one.at("phase"), "update_actor");
}

TEST_F(Usage, RanksAndPhasesOfNoAccountAre64) {
  const std::string words = "explain " + plan() + " --memory ";
  const Called phase = call(words + "--phase update_actr");
  EXPECT_EQ(phase.code, 64);
  EXPECT_THAT(phase.out, HasSubstr("did you mean 'update_actor'?"));
  const Called absent = call(words + "--phase update_critic");
  EXPECT_EQ(absent.code, 64);
  EXPECT_THAT(absent.out, HasSubstr("a phase of the plan: "));
  const Called rank = call(words + "--rank 4000");
  EXPECT_EQ(rank.code, 64);
  EXPECT_THAT(rank.out, HasSubstr("a rank that has a role"));
  EXPECT_EQ(call("explain " + plan() + " --rank 0").code, 64);  // of no account
}

TEST_F(EditedPlan, ARunOfAnotherPlanIsNotCompared) {
  const fs::path run = folder_ / "compared";
  fs::create_directories(run);
  Problems problems;
  const auto read = read_plan(plan(), problems);
  ASSERT_TRUE(read);
  std::ofstream(run / "metrics.jsonl")
      << "{\"step\": 1, \"data\": {\"timing_s/step\": 2.0, \"reshard/bytes\": "
      << read->reshard.at(0).bytes_received << "}}\n";
  const auto compared = [&](const std::function<void(Plan&)>& edit) {
    fs::rename(edited("ran.json", edit), run / "plan.json");
    return call("compare " + plan() + " " + run.string());
  };
  EXPECT_EQ(compared([](Plan&) {}).code, 0);
  // How weights travel is the run's choice.
  EXPECT_EQ(
      compared([](Plan& ran) { ran.reshard[0].transport = ReshardTransport::send_recv; }).code, 0);
  const Called other = compared([](Plan& ran) { ran.roles[0].recompute = Recompute::full; });
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("a run of another plan"));
  const Called full = compared([](Plan& ran) { set_reshard_mode(ran, ReshardMode::full); });
  EXPECT_EQ(full.code, 65);
  EXPECT_THAT(full.out, HasSubstr("reshard full"));
  EXPECT_THAT(full.out, HasSubstr("reshard minimal"));
}

/// The run's configuration halves what is foreseen: the full bytes are then a failed check.
TEST_F(EditedPlan, ComparesBytesWithThoseOfTheRunsWireType) {
  const fs::path run = folder_ / "wired";
  fs::create_directories(run);
  const std::string file = edited("wire.json", [](Plan& each) {
    for (RolePlan& role : each.roles) role.dtypes.wire = DType::fp32;
    each.reshard[0].bytes_received = Bytes{1 << 20};
  });
  Problems problems;
  const std::int64_t planned = read_plan(file, problems).value().reshard.at(0).bytes_received;
  const auto compared = [&](std::int64_t bytes, const char* config) {
    std::ofstream(run / "metrics.jsonl")
        << "{\"step\": 1, \"data\": {\"timing_s/step\": 2.0, \"reshard/bytes\": " << bytes
        << ", \"reshard/spared_bytes\": " << planned - bytes << "}}\n";
    std::ofstream(run / "run.yaml") << config;
    return call("compare " + file + " " + run.string());
  };
  const std::string half = std::to_string(planned / 2) + " bytes predicted, ";
  EXPECT_EQ(compared(planned, "version: 1\n").code, 0);
  EXPECT_EQ(compared(planned / 2, "version: 1\n").code, 1);
  const Called wire = compared(planned / 2, "reshard: {wire: fp16}\n");
  EXPECT_EQ(wire.code, 0);
  EXPECT_THAT(wire.out, HasSubstr(half + std::to_string(planned / 2) + " measured: equal"));
  EXPECT_EQ(compared(planned, "reshard: {wire: fp16}\n").code, 1);
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

}  // namespace
}  // namespace tessera
