// The command line as a user meets it: exit codes and what the messages name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

struct Called {
  int code = -1;
  std::string out;  // stdout, and stderr where asked
};

Called call(const std::string& words, const char* streams = "2>&1") {
  const std::string command =
      std::string(TESSERA_BINARY_DIR) + "/cli/tessera " + words + " " + streams;
  Called called;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> piece{};
  while (const std::size_t read = fread(piece.data(), 1, piece.size(), pipe)) {
    called.out.append(piece.data(), read);
  }
  const int status = pclose(pipe);
  called.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return called;
}

const std::string kAsk = "plan --model qwen2.5-0.5b --cluster h100-8 --workload grpo-7b-1k ";

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
  EXPECT_EQ(call(kAsk + "--fix foo").code, 64);
  EXPECT_EQ(call(kAsk + "--fix critic.tp=2").code, 64);
  EXPECT_EQ(call(kAsk + "--vary rollout.tp").code, 64);
  const Called why = call("explain " + plan() + " --why-not foo");
  EXPECT_EQ(why.code, 64);
  EXPECT_THAT(why.out, HasSubstr("--why-not"));
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
  const std::string file = edited("step.json", [](Plan& each) { each.prediction.step_s = 1; });
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

TEST_F(EditedPlan, ThatNoLongerFitsIs2AndExportedWithAWarning) {
  const std::string file =
      edited("memory.json", [](Plan& each) { each.cluster.device.memory = from_gib(10); });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 2);
  EXPECT_THAT(called.out, HasSubstr("does not fit: "));
  EXPECT_THAT(called.out, Not(HasSubstr("proven best")));
  const Called exported =
      call("export " + file + " --to torchrun -o " + (folder_ / "exported").string());
  EXPECT_EQ(exported.code, 0);
  EXPECT_THAT(exported.out, HasSubstr("warning: does not fit: "));
  const Called clean =
      call("export " + plan() + " --to torchrun -o " + (folder_ / "exported").string());
  EXPECT_THAT(clean.out, Not(HasSubstr("warning")));
}

TEST_F(EditedPlan, WithoutASearchSaysSoAndAgreesWithItsOwnFigures) {
  const std::string file = edited("unsearched.json", [](Plan& each) { each.certificate = {}; });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 0) << called.out;  // the search's figures are the cost model's
  EXPECT_THAT(called.out, HasSubstr("not from a search"));
  EXPECT_THAT(called.out, HasSubstr("the file's times and peak are those computed"));
  EXPECT_THAT(called.out, HasSubstr("certificate: none"));
}

TEST_F(Usage, ViolatedRulesThatStopARunFailTheCheck) {
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
  EXPECT_EQ(call("explain " + plan() + " --rules " + file.string()).code, 0);
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

}  // namespace
}  // namespace tessera
