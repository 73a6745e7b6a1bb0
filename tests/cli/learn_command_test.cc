// compare, learn and advise as a user of verl calls them: on what verl's loggers wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "tests/cli/called.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

const std::string kLogs = std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/verl_logs/";

// The plan of the logs' run, and verl's script for it.
class Learned : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("tessera-learn-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    std::ofstream(at("workload.yaml"))
        << "version: 1\nalgorithm: grpo\nprompts_per_step: 64\nsamples_per_prompt: 8\n"
           "prompt_tokens: 512\nresponse_tokens: {mean: 1024, cv: 0, max: 1024}\n"
           "mini_batches: 1\nepochs: 1\nkl: none\n";
    ASSERT_EQ(call("plan --model qwen2.5-7b --cluster h200-8 --engine verl --workload " +
                   at("workload.yaml") + " -o " + at("plan.json") +
                   " --fix actor.gpus=4 rollout.gpus=4 actor.tp=1 actor.pp=1 actor.zero=3"
                   " actor.recompute=full actor.tokens=16384 rollout.tp=1")
                  .code,
              0);
    ASSERT_EQ(call("export " + at("plan.json") + " --to verl -o " + at("job")).code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string at(const std::string& name) { return (folder_ / name).string(); }
  static nlohmann::json json_of(const std::string& words) {
    const Called called = call(words + " --json", "2>/dev/null");
    EXPECT_EQ(called.code, 0) << words;
    return nlohmann::json::parse(called.out);
  }
  inline static fs::path folder_;
};

TEST_F(Learned, JsonLinesAndConsoleTeachTheSame) {
  const auto lines = json_of("learn " + kLogs + "metrics.jsonl --plan " + at("plan.json"));
  const auto console = json_of("learn " + kLogs + "console.log --plan " + at("plan.json"));
  EXPECT_EQ(lines.at("constants"), console.at("constants"));
  EXPECT_EQ(lines.at("constants")[0].at("fate"), "moved");
  EXPECT_EQ(lines.at("runs")[0].at("warm_up"), 1);
  EXPECT_EQ(lines.at("runs")[0].at("steps"), 2);
}

/// The script that ran stands for the plan.
TEST_F(Learned, AVerlScriptIsReadAsThePlan) {
  const std::string words = "learn " + kLogs + "metrics.jsonl --plan " + at("job/run.sh");
  const auto learned = json_of(words + " --cluster h200-8");
  const auto& step = learned.at("runs")[0].at("phases").back();
  const auto planned = json_of("learn " + kLogs + "metrics.jsonl --plan " + at("plan.json"));
  EXPECT_NEAR(step.at("before_s").get<double>() /
                  planned.at("runs")[0].at("phases").back().at("before_s").get<double>(),
              1, 0.02);
  const Called without = call(words);
  EXPECT_EQ(without.code, 64);
  EXPECT_THAT(without.out, HasSubstr("--cluster"));
}

TEST_F(Learned, TheCalibrationIsOneThatPlansAreMadeWith) {
  const std::string file = at("learned.json");
  EXPECT_EQ(call("learn " + kLogs + "metrics.jsonl --plan " + at("plan.json") + " -o " + file).code,
            0);
  Problems problems;
  const auto calibration = read_calibration(file, problems);
  ASSERT_TRUE(calibration) << to_string(problems.at(0));
  EXPECT_THAT(calibration->name, HasSubstr("learned from 1 run"));
  EXPECT_FALSE(constant_names(*calibration, true).empty());
  const auto simulated = json_of("simulate " + at("plan.json") + " --calibration " + file);
  const auto before = json_of("simulate " + at("plan.json"));
  // The logs were a little quicker than the shipped constants say.
  const double ratio = simulated.at("step_s").get<double>() / before.at("step_s").get<double>();
  EXPECT_GT(std::abs(ratio - 1), 0.01);
}

TEST_F(Learned, AdviceIsACommandThatKeepsItsWord) {
  const auto advice = json_of("advise " + kLogs + "metrics.jsonl --plan " + at("plan.json") +
                              " -o \"" + at("ad v'x") + "\"");
  ASSERT_FALSE(advice.at("changes").empty());
  for (const auto& change : advice.at("changes")) {
    const auto command = change.at("command").get<std::string>();
    ASSERT_THAT(command, testing::StartsWith("tessera plan --from "));
    const auto plan = json_of(command.substr(std::string("tessera ").size()));
    EXPECT_NEAR(
        plan.at("prediction").at("step_s").get<double>() / change.at("step_s").get<double>(), 1,
        1e-6);
  }
}

/// Old values are the script's own. Where its micro-batches count sequences, a new limit of tokens
/// is of no effect without dynamic batches, which verl has off by default.
TEST_F(Learned, AdviceNamesTheKeysOfTheScriptThatRan) {
  std::ofstream(at("counted.sh"))
      << "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64"
         " data.max_prompt_length=1024 data.max_response_length=1024"
         " actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct"
         " actor_rollout_ref.model.enable_gradient_checkpointing=True"
         " actor_rollout_ref.actor.ppo_mini_batch_size=64"
         " actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2"
         " actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2"
         " actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8"
         " actor_rollout_ref.rollout.tensor_model_parallel_size=2"
         " trainer.n_gpus_per_node=4 trainer.nnodes=1\n";
  const std::string words = "advise " + kLogs + "metrics.jsonl --plan " + at("counted.sh") +
                            " --cluster h200-8 -o " + at("counted");
  const auto changes = json_of(words).at("changes");
  bool limited = false;
  for (const auto& change : changes) {
    EXPECT_NE(change.at("what"), "");
    const auto keys = change.at("keys").get<std::vector<std::string>>();
    const auto has = [&](const std::string& text) {
      return std::any_of(keys.begin(), keys.end(),
                         [&](const std::string& key) { return key.starts_with(text); });
    };
    const std::string actor = "actor_rollout_ref.actor.";
    if (has(actor + "ppo_max_token_len_per_gpu: (not set) -> ")) {
      limited = true;
      EXPECT_TRUE(has(actor + "use_dynamic_bsz: (not set) -> true"));
    }
    if (has("actor_rollout_ref.model.enable_gradient_checkpointing")) {
      EXPECT_TRUE(has("actor_rollout_ref.model.enable_gradient_checkpointing: true -> false"));
    }
  }
  EXPECT_TRUE(limited);
  std::ostringstream logs;
  logs << std::ifstream(kLogs + "metrics.jsonl").rdbuf();
  const std::string measured = std::regex_replace(logs.str(), std::regex(R"("timing_s/step")"),
                                                  R"("prompt_length/mean":700.0,"timing_s/step")");
  std::ofstream(at("prompts.jsonl")) << measured;
  const Called told = call("advise " + at("prompts.jsonl") + " --plan " + at("counted.sh") +
                           " --cluster h200-8 -o " + at("prompts"));
  EXPECT_EQ(told.code, 0) << told.out;
  // What is exported from the run's plan admits what the script admits, not the mean alone.
  const auto plan = nlohmann::json::parse(std::ifstream(at("prompts/plan.json")));
  EXPECT_EQ(plan.at("workload").at("prompt_tokens"),
            (nlohmann::json{{"mean", 700}, {"max", 1024}}));
  ASSERT_EQ(call("export " + at("prompts/plan.json") + " --to verl -o " + at("prompts/job")).code,
            0);
  std::ostringstream job;
  job << std::ifstream(at("prompts/job/run.sh")).rdbuf();
  EXPECT_THAT(job.str(), HasSubstr("data.max_prompt_length=1024"));
  EXPECT_THAT(job.str(), HasSubstr("actor_rollout_ref.rollout.max_model_len=2048"));
}

/// verl ends where a sequence is longer than a limit (utils/seqlen_balancing.py): the longest that
/// the script admits counts, not the mean prompt that was measured.
TEST_F(Learned, AdvisedLimitsHoldTheScriptsLongestSequence) {
  std::ofstream(at("long_prompts.sh"))
      << "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64"
         " data.max_prompt_length=3072 data.max_response_length=1024"
         " actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct"
         " actor_rollout_ref.actor.ppo_mini_batch_size=64"
         " actor_rollout_ref.actor.use_dynamic_bsz=True"
         " actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384"
         " actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8"
         " actor_rollout_ref.rollout.tensor_model_parallel_size=2"
         " trainer.n_gpus_per_node=4 trainer.nnodes=1\n";
  std::ostringstream logs;
  logs << std::ifstream(kLogs + "metrics.jsonl").rdbuf();
  std::ofstream(at("short_prompts.jsonl"))
      << std::regex_replace(logs.str(), std::regex(R"("timing_s/step")"),
                            R"("prompt_length/mean":200.0,"timing_s/step")");
  const auto changes = json_of("advise " + at("short_prompts.jsonl") + " --plan " +
                               at("long_prompts.sh") + " --cluster h200-8 -o " + at("long_prompts"))
                           .at("changes");
  int limits = 0;
  for (const auto& change : changes) {
    for (const auto& key : change.at("keys")) {
      const auto text = key.get<std::string>();
      if (text.find("max_token_len_per_gpu") == text.npos) continue;
      ++limits;
      EXPECT_GE(std::stoll(text.substr(text.rfind(' '))), 3072 + 1024) << text;
    }
  }
  EXPECT_GT(limits, 0);
}

TEST_F(Learned, SimulatesOtherConstantsAndSaysWhichMatter) {
  const auto before = json_of("simulate " + at("plan.json"));
  const auto slow = json_of("simulate " + at("plan.json") + " --set matmul_flop_per_s=5e14");
  EXPECT_GT(slow.at("step_s").get<double>(), 1.2 * before.at("step_s").get<double>());
  const auto sensitivities = json_of("simulate " + at("plan.json") + " --sensitivity");
  EXPECT_LT(sensitivities.at("sensitivities")[0].at("error").get<double>(), 1);
  EXPECT_GT(sensitivities.at("sensitivities").size(), 5U);
  const Called unknown = call("simulate " + at("plan.json") + " --set matmul=1");
  EXPECT_EQ(unknown.code, 64);
  EXPECT_THAT(unknown.out, HasSubstr("--set"));
}

/// Constants that no machine has end in words, whatever they make of integer nanoseconds.
TEST_F(Learned, ConstantsBeyondAnyMachineAreRefused) {
  for (const char* words : {" --set matmul_flop_per_s=1e-3", " --set dispatch_s=1e25",
                            " --steps 1000 --set decode_step_s=1e5"}) {
    const Called called = call("simulate " + at("plan.json") + words);
    EXPECT_EQ(called.code, 65) << words;
    EXPECT_THAT(called.out, HasSubstr("at most 1e9 s in all")) << words;
  }
  EXPECT_EQ(call("simulate " + at("plan.json") + " --set decode_step_s=10").code, 0);
}

/// No option is dropped in silence.
TEST_F(Learned, SensitivitiesTakeNoOptionOfASimulation) {
  for (const char* words : {"--seed 3", "--seeds 8", "--steps 2", "--trace-events 9"}) {
    EXPECT_EQ(call("simulate " + at("plan.json") + " --sensitivity " + words).code, 64) << words;
  }
  EXPECT_EQ(call("simulate " + at("plan.json") + " --sensitivity --trace " + at("t.json")).code,
            64);
  EXPECT_FALSE(fs::exists(at("t.json")));
}

TEST_F(Learned, LengthsBeyondThePlanAreRefused) {
  std::ofstream(at("long.jsonl"))
      << R"({"step": 1, "data": {"timing_s/step": 9, "timing_s/gen": 3, "response_length/mean": 2048}})"
      << "\n";
  for (const char* command : {"learn ", "compare "}) {
    const bool compares = std::string(command) == "compare ";
    const Called called =
        call(command + (compares ? at("plan.json") + " " + at("long.jsonl")
                                 : at("long.jsonl") + " --plan " + at("plan.json")));
    EXPECT_EQ(called.code, 65);
    EXPECT_THAT(called.out, HasSubstr("2048 tokens"));
    EXPECT_THAT(called.out, HasSubstr("1024"));
  }
}

TEST_F(Learned, ComparingALogOfVerlCountsNoBytes) {
  const Called called = call("compare " + at("plan.json") + " " + kLogs + "console.log");
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, Not(HasSubstr("NOT EQUAL")));
  EXPECT_THAT(called.out, HasSubstr("reshard"));
  EXPECT_THAT(called.out, HasSubstr("1075.00ms"));
  EXPECT_THAT(called.out, HasSubstr("largest differences"));
}

/// A plan that happens to lie beside a log is not taken for the one that ran, and does not keep the
/// named one from being it.
TEST_F(Learned, APlanThatLiesBesideALogIsNoneOfIt) {
  fs::create_directories(at("mixed"));
  fs::copy_file(kLogs + "metrics.jsonl", at("mixed/verl.jsonl"));
  ASSERT_EQ(call("plan --model qwen2.5-0.5b --cluster h200-8 --workload " + at("workload.yaml") +
                 " -o " + at("mixed/plan.json"))
                .code,
            0);
  const Called lone = call("learn " + at("mixed/verl.jsonl"));
  EXPECT_EQ(lone.code, 65);
  EXPECT_THAT(lone.out, HasSubstr("no plan beside the metrics"));
  EXPECT_EQ(call("learn " + at("mixed/verl.jsonl") + " --plan " + at("plan.json")).code, 0);
  EXPECT_EQ(call("compare " + at("plan.json") + " " + at("mixed/verl.jsonl")).code, 0);
}

TEST_F(Learned, WhatIsMissingIsNamed) {
  const Called plan = call("learn " + kLogs + "metrics.jsonl");
  EXPECT_EQ(plan.code, 65);
  EXPECT_THAT(plan.out, HasSubstr("no plan beside the metrics"));
  const Called steps =
      call("learn " + kLogs + "metrics.jsonl --warm-up 9 --plan " + at("plan.json"));
  EXPECT_EQ(steps.code, 65);
  EXPECT_THAT(steps.out, HasSubstr("3 steps, 9 of them warm-up"));
  const Called plans = call("learn " + kLogs + "metrics.jsonl --plan a.json --plan b.json");
  EXPECT_EQ(plans.code, 64);
}

// `tessera calibrate` names a machine's constants as those shipped, and its file may be elsewhere.
TEST_F(Learned, APlanIsJudgedWithTheConstantsOfTheFileThatItWasMadeWith) {
  Problems problems;
  Calibration own = find_calibration("h200", problems).value();
  own.matmul_flops.value /= 2;
  own.memory_bandwidth.value /= 2;
  write_calibration(own, at("own.json"));
  const std::string words = "plan --model qwen2.5-7b --cluster h200-8 --workload " +
                            at("workload.yaml") + " --fix actor.tp=2 -o ";
  ASSERT_EQ(call(words + at("shipped_plan.json")).code, 0);
  ASSERT_EQ(call(words + at("own_plan.json") + " --calibration " + at("own.json")).code, 0);
  fs::remove(at("own.json"));
  const auto simulated = [](const std::string& plan) {
    return json_of("simulate " + plan).at("step_s").get<double>();
  };
  EXPECT_GT(simulated(at("own_plan.json")), 1.2 * simulated(at("shipped_plan.json")));
  const Called why = call("explain " + at("own_plan.json") + " --why-not actor.tp=2", "2>&1");
  EXPECT_THAT(why.out, Not(HasSubstr("other constants"))) << why.out;
  // Without them it is judged with those shipped, and says so.
  nlohmann::json bare = nlohmann::json::parse(std::ifstream(at("own_plan.json")));
  bare["provenance"].erase("constants");
  std::ofstream(at("bare_plan.json")) << bare;
  EXPECT_THAT(call("simulate " + at("bare_plan.json"), "2>&1 >/dev/null").out,
              HasSubstr("warning: the plan was made with other constants (h200, digest "));
}

}  // namespace
}  // namespace tessera
