// The programs as a user calls them: plan, run on four CPU ranks, compare.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/called.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

TEST_F(Run, GrpoLearnsWithAReshardInEveryStepAndBytesAreThePlans) {
  ASSERT_EQ(train("learn", 40), 0);
  const std::vector<double> reward = rewards("learn");
  ASSERT_EQ(reward.size(), 40u);
  EXPECT_LT(reward[0], 0.15) << "random weights answer by chance";
  EXPECT_GT(mean_of_last(reward, 5), 0.4);
  EXPECT_EQ(run("compare " + at("plan.json") + " " + at("learn")), 0);
  EXPECT_TRUE(fs::exists(folder_ / "learn/hf/model.safetensors"));
}

TEST_F(Run, TheSameSeedGivesTheSameBits) {
  ASSERT_EQ(train("once", 4), 0);
  ASSERT_EQ(train("again", 4), 0);
  EXPECT_EQ(text_of(folder_ / "once/samples.jsonl"), text_of(folder_ / "again/samples.jsonl"));
  EXPECT_EQ(text_of(folder_ / "once/hf/model.safetensors"),
            text_of(folder_ / "again/hf/model.safetensors"));
}

/// Every training layout draws the first step's samples and stays near the others' rewards:
/// rounding alone tells them apart.
TEST_F(Run, EveryTrainingLayoutOfAPlanLearnsTheSame) {
  const auto rewards_in = [](const std::string& name, const std::string& fixed) {
    EXPECT_EQ(
        run("plan --model " + at("model") + " --cluster local-cpu --workload grpo-digits --fix " +
            fixed + " rollout.tp=2 rollout.dp=2 -o " + at(name + ".json")),
        0)
        << fixed;
    EXPECT_EQ(train(name, 5, "", name + ".json"), 0) << fixed;
    EXPECT_EQ(run("compare " + at(name + ".json") + " " + at(name)), 0) << fixed;
    return rewards(name);
  };
  const std::vector<double> want = rewards_in("plain", "actor.tp=1 actor.pp=1 actor.zero=0");
  for (const auto& [name, fixed] : std::vector<std::pair<std::string, std::string>>{
           {"zero2", "actor.tp=1 actor.pp=1 actor.zero=2"},
           {"fsdp", "actor.tp=1 actor.pp=1 actor.zero=3 actor.recompute=full"},
           {"tp-fsdp", "actor.tp=2 actor.pp=1 actor.zero=3 actor.recompute=selective"},
           {"offload", "actor.tp=2 actor.pp=2 actor.offload=optimizer"},
           {"offload-all", "actor.tp=2 actor.pp=2 actor.offload=all"},
           {"ring", "actor.tp=1 actor.pp=1 actor.cp=4 actor.context=ring"},
           {"ring-fsdp", "actor.tp=1 actor.pp=1 actor.cp=2 actor.zero=3"},
           {"ulysses", "actor.tp=2 actor.pp=1 actor.cp=2 actor.context=ulysses"},
           {"ring-pp", "actor.tp=1 actor.pp=2 actor.cp=2 actor.context=ring"}}) {
    const std::vector<double> got = rewards_in(name, fixed);
    ASSERT_EQ(got.size(), want.size()) << name;
    EXPECT_EQ(got[0], want[0]) << name;
    for (std::size_t i = 1; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.02) << name;
  }
}

/// Actor, reference and critic, with the reference's log-probs in the reward.
TEST_F(Run, EveryRoleOfPpoRunsWithItsSequencesCut) {
  std::ofstream(folder_ / "ppo.yaml") << R"(version: 1
algorithm: ppo
prompts_per_step: 16
samples_per_prompt: 4
prompt_tokens: 8
response_tokens: {mean: 4, cv: 0, max: 4}
mini_batches: 2
epochs: 1
kl: reward
)";
  const auto numbers_of = [&](const std::string& name, const std::string& fixed) {
    EXPECT_EQ(run("plan --model " + at("model") + " --cluster local-cpu --workload " +
                  at("ppo.yaml") + " --fix placement=colocated rollout.tp=1 rollout.dp=4 " + fixed +
                  " -o " + at(name + ".json")),
              0);
    EXPECT_EQ(
        run("run " + at(name + ".json") + " --config ppo-digits --set 'data.train_files=[" +
            at("prompts.jsonl") + "]' --set trainer.total_training_steps=2" + " -o " + at(name)),
        0);
    Problems problems;
    return *read_metrics(folder_ / name / "metrics.jsonl", problems);
  };
  const auto want = numbers_of("ppo", "actor.tp=1 actor.pp=1 critic.tp=1 critic.pp=1");
  const auto got =
      numbers_of("ppo-cut",
                 "actor.cp=2 actor.context=ring actor.tp=1 actor.pp=1 reference.cp=2 "
                 "reference.context=ulysses reference.tp=1 critic.cp=4 critic.context=ring");
  ASSERT_EQ(got.size(), want.size());
  for (const char* name : {"actor/pg_loss", "actor/entropy_loss", "critic/vf_loss",
                           "critic/grad_norm", "actor/grad_norm"}) {
    ASSERT_TRUE(want[0].data.contains(name)) << name;
    const double value = want[0].data.at(name);
    EXPECT_NEAR(got[0].data.at(name), value, 1e-3 * std::max(1.0, std::abs(value))) << name;
  }
}

/// One of the spans of a phase in a run's trace: its first and last microsecond.
std::pair<double, double> span_of(const fs::path& trace, const std::string& phase, int step) {
  const auto events = nlohmann::json::parse(std::ifstream(trace)).at("traceEvents");
  double begin = 1e300, end = 0;
  for (const auto& event : events) {
    if (event.at("ph") != "X" || event.at("name") != phase) continue;
    if (event.at("args").value("step", -1) != step) continue;
    begin = std::min(begin, event.at("ts").get<double>());
    end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  return {begin, end};
}

TEST_F(Run, RolesOnRanksOfTheirOwnTrainAtTheSameTime) {
  ASSERT_EQ(run("plan --model " + at("model") +
                " --cluster local-cpu --workload ppo-digits --fix 'placement=actor | critic' "
                "actor.gpus=2 critic.gpus=2 -o " +
                at("ppo-apart.json")),
            0);
  ASSERT_EQ(
      run("run " + at("ppo-apart.json") + " --config ppo-digits --set 'data.train_files=[" +
          at("prompts.jsonl") + "]' --set trainer.total_training_steps=2 -o " + at("ppo-apart")),
      0);
  const fs::path trace = folder_ / "ppo-apart/trace.json";
  const auto [actor_begin, actor_end] = span_of(trace, "update_actor", 2);
  const auto [critic_begin, critic_end] = span_of(trace, "update_critic", 2);
  // One after the other, clocks of two ranks may still show a moment of both.
  EXPECT_LT(actor_begin, (critic_begin + critic_end) / 2);
  EXPECT_LT(critic_begin, (actor_begin + actor_end) / 2);
}

/// Figures are kept with the command that makes them again.
TEST_F(Run, EveryBenchMeasuresOnCpuRanksAndKeepsItsCommand) {
  for (const std::string& words :
       {"reshard --ranks 2 --case tp2-tp1 --practice --repeat 1 --model " + at("model"),
        "reshard --ranks 1 --case tp1-tp1 --practice --repeat 1 --model " + at("model"),
        std::string("collectives --ranks 2 --repeat 1 --largest 1048576"),
        std::string("collectives --ranks 2 --repeat 1"),
        "kernels --tokens 64 --sequence 32 --optimizer-elements 4096 --repeat 1 --model " +
            at("model")}) {
    ASSERT_EQ(run("bench " + words + " -o " + at("bench.json")), 0) << words;
    const auto result = nlohmann::json::parse(std::ifstream(folder_ / "bench.json"));
    EXPECT_FALSE(result.at("figures").empty()) << words;
    const std::string command = result.at("command").get<std::string>() + " ";
    std::istringstream given(words.substr(words.find(' ')));
    for (std::string word; given >> word;) {
      EXPECT_NE(command.find(" " + word + " "), std::string::npos) << word << " in " << command;
    }
    EXPECT_NE(command.find(" --device cpu "), std::string::npos) << command;
  }
}

TEST_F(Run, OffloadChangesNoBit) {
  const auto model_of = [&](const std::string& name, const std::string& more) {
    EXPECT_EQ(run("plan --model " + at("model") +
                  " --cluster local-cpu --workload grpo-digits --fix actor.tp=2 actor.zero=3 "
                  "rollout.tp=2 rollout.dp=2 " +
                  more + " -o " + at(name + ".json")),
              0);
    EXPECT_EQ(train(name, 3, "", name + ".json"), 0) << more;
    EXPECT_EQ(run("compare " + at(name + ".json") + " " + at(name)), 0) << more;
    return text_of(folder_ / name / "samples.jsonl") +
           text_of(folder_ / name / "hf/model.safetensors");
  };
  const std::string want = model_of("on-device", "actor.offload=none");
  EXPECT_TRUE(want == model_of("states-away", "actor.offload=optimizer"));
  EXPECT_TRUE(want == model_of("all-away", "actor.offload=all"));
}

TEST_F(Run, WithoutALearningRateTheRewardStaysAtChance) {
  ASSERT_EQ(train("still", 8, "--set actor_rollout_ref.actor.optim.lr=0"), 0);
  EXPECT_LT(mean_of_last(rewards("still"), 4), 0.15);
}

TEST_F(Run, NeverOverwritesAnotherRun) {
  fs::create_directory(folder_ / "taken");
  EXPECT_EQ(train("taken", 1), 65);
  EXPECT_TRUE(fs::is_empty(folder_ / "taken"));
}

TEST_F(Run, WhatIsRefusedStartsNoRankAndLeavesNoFolder) {
  const auto tried = [](const std::string& more) {
    return run("run " + at("plan.json") + " --config grpo-digits " + more + " -o " + at("refused"));
  };
  EXPECT_EQ(tried("--set actor_rollout_ref.actor.optim.learning=1"), 65);
  EXPECT_EQ(tried("--set 'data.train_files=[nowhere.jsonl]'"), 65);
  const std::string data = "--set 'data.train_files=[" + at("prompts.jsonl") + "]'";
  fs::rename(folder_ / "model/model.safetensors", folder_ / "weights");
  EXPECT_EQ(tried(data), 65) << "no weights";
  std::ofstream(folder_ / "model/model.safetensors") << text_of(folder_ / "weights").substr(0, 900);
  EXPECT_EQ(tried(data), 65) << "a part of them";
  fs::rename(folder_ / "weights", folder_ / "model/model.safetensors");
  EXPECT_FALSE(fs::exists(folder_ / "refused"));
}

/// A model whose folder names no end of a response, in any of the three files that may.
TEST_F(Run, AModelThatNothingEndsIsToldAtTheStartAndWhenItIsChecked) {
  fs::copy(folder_ / "model", folder_ / "endless");
  for (const std::string file : {"config.json", "tokenizer_config.json"}) {
    auto json = nlohmann::json::parse(text_of(folder_ / "endless" / file));
    for (const char* key : {"eos_token_id", "eos_token"}) json.erase(key);
    std::ofstream(folder_ / "endless" / file) << json.dump();
  }
  ASSERT_EQ(run("plan --model " + at("endless") +
                " --cluster local-cpu --workload grpo-digits -o " + at("endless.json")),
            0);
  ASSERT_EQ(train("endless-run", 1, "", "endless.json"), 0);
  const std::string told = "[Rollout] every response has 4 tokens, as no token ends one: ";
  EXPECT_NE(text_of(at("endless-run/log.txt")).find(told), std::string::npos);
  std::ofstream(at("endless.yaml")) << "data: {train_files: [" << at("prompts.jsonl")
                                    << "]}\ntrainer: {total_training_steps: 1}\n";
  const auto check = [&](const std::string& plan) {
    const std::string line = TESSERA_BINARY_DIR "/executor/tessera-run train " + at(plan) +
                             " --config " + at("endless.yaml") + " --device cpu --check -o " +
                             at("checked") + " >" + at("checked.txt");
    EXPECT_EQ(std::system(line.c_str()), 0);
    return text_of(at("checked.txt"));
  };
  EXPECT_NE(check("endless.json").find(told), std::string::npos);
  EXPECT_EQ(check("plan.json").find(told), std::string::npos);
}

TEST_F(Run, AModelThatWasMovedIsToldWithThePlanThatNamesItAndHowToStateAnother) {
  fs::copy(folder_ / "model", folder_ / "before");
  ASSERT_EQ(run("plan --model " + at("before") + " --cluster local-cpu --workload grpo-digits -o " +
                at("moved-model.json")),
            0);
  fs::rename(folder_ / "before", folder_ / "behind");
  const Called refused =
      call("run " + at("moved-model.json") + " --config grpo-digits -o " + at("moved-model"));
  EXPECT_EQ(refused.code, 65);
  EXPECT_EQ(refused.out,
            "tessera: " + at("moved-model.json") + ":/models/actor/path: found '" + at("before") +
                "', no such folder, expected the folder of the model that the plan was made for "
                "(where it was moved, write its new path there; for another model plan again "
                "(tessera plan --model FOLDER))\n");
  std::string plan = text_of(at("moved-model.json"));
  plan.replace(plan.find(at("before")), at("before").size(), at("behind"));
  std::ofstream(at("moved-model.json")) << plan;
  EXPECT_EQ(train("moved-model", 1, "", "moved-model.json"), 0);
}

/// Whether or not another key is set on the command line.
TEST_F(Run, ANumberInQuotesIsATextWhereverItStands) {
  std::ofstream(at("quoted.yaml")) << "data: {train_files: [" << at("prompts.jsonl")
                                   << "]}\ntrainer: {total_training_steps: 1}\n"
                                      "actor_rollout_ref: {actor: {optim: {lr: '1e-3'}}}\n";
  for (const std::string set : {"", " --set trainer.seed=1"}) {
    const Called refused = call("run " + at("plan.json") + " --config " + at("quoted.yaml") + set +
                                " -o " + at("quoted"));
    EXPECT_EQ(refused.code, 65) << set;
    EXPECT_NE(refused.out.find("(actor_rollout_ref.actor.optim.lr): found \"1e-3\", expected a "
                               "number"),
              std::string::npos)
        << refused.out;
  }
}

TEST_F(Run, ExitCodesSayWhatWasWrong) {
  EXPECT_EQ(run("run"), 64);
  EXPECT_EQ(run("plan --model nobody --cluster local-cpu --workload grpo-digits"), 65);
  EXPECT_EQ(run("plan --model llama3.1-405b --cluster h100-8 --workload ppo-7b-1k"), 2);
  EXPECT_EQ(train("config", 1, "--set actor_rollout_ref.actor.optim.learning=1"), 65);
  EXPECT_EQ(run("simulate " + at("plan.json")), 0);
  EXPECT_EQ(run("explain " + at("plan.json")), 0);
}

/// A rule that warns tells once; one that asks for more ends the run after its step, saved.
TEST_F(Run, RulesAreJudgedOnEveryStepAndMayEndTheRun) {
  const auto rule = [](const std::string& name, const std::string& metric, int most,
                       const std::string& action) {
    return R"({"name": ")" + name + R"(", "metric": ")" + metric +
           R"(", "scope": "step", "operator": "<=", "value": )" + std::to_string(most) +
           R"(, "unit": "ratio", "source": "a test", "evidence": "confirmed", "published": "",)" +
           R"( "advice": "do this", "action": ")" + action + R"(", "enabled": true})";
  };
  std::ofstream(at("rules.json")) << R"({"tessera_rules": 1, "profile": "test", "note": "",)"
                                  << R"( "rules": [)"
                                  << rule("early", "training/global_step", 0, "warn") << ", "
                                  << rule("mistyped", "training/global_stp", 1, "stop") << ", "
                                  << rule("late", "training/global_step", 2, "stop") << "]}";
  EXPECT_EQ(train("ruled", 40, "--set trainer.rules=" + at("rules.json")), 130);
  const std::string log = text_of(folder_ / "ruled/log.txt");
  const std::string early = "[Rule] step 1: early: training/global_step is 1, not <= 0; do this";
  EXPECT_NE(log.find(early), std::string::npos) << log;
  EXPECT_EQ(log.find("early", log.find(early) + early.size()), std::string::npos) << "told once";
  EXPECT_NE(
      log.find("[Rule] not judged after step 1: mistyped (no training/global_stp, did you mean "
               "'training/global_step'?)"),
      std::string::npos)
      << log;
  EXPECT_NE(log.find("[Rule] step 3: late: training/global_step is 3, not <= 2 (stop)"),
            std::string::npos)
      << log;
  EXPECT_EQ(rewards("ruled").size(), 3u);
  EXPECT_TRUE(fs::exists(folder_ / "ruled/checkpoints/global_step_3"));
  EXPECT_EQ(train("unruled", 1, "--set trainer.rules=" + at("nothing.json")), 65);
}

TEST_F(Run, VerlsStandardNumbersAreThere) {
  ASSERT_EQ(train("standard", 17), 0);
  Problems problems;
  const auto steps = read_metrics(folder_ / "standard/metrics.jsonl", problems);
  ASSERT_TRUE(steps);
  for (const StepNumbers& step : *steps) {
    // 512 prompts, 32 a step: a pass has 16 steps.
    EXPECT_EQ(step.data.at("training/epoch"), step.step <= 16 ? 0 : 1) << step.step;
    EXPECT_EQ(step.data.at("training/not_finite"), 0);
    EXPECT_EQ(step.data.at("training/skipped_updates"), 0);
    EXPECT_GT(step.data.at("perf/cpu_memory_used_gb"), 0);
    EXPECT_GT(step.data.at("perf/mfu/actor"), 0);
  }
  // The old policy is that of the first update where there is one mini-batch, and random weights
  // are close to the uniform distribution over 16 tokens.
  const double entropy = steps->front().data.at("actor/entropy");
  EXPECT_GT(entropy, 0.5);
  EXPECT_LE(entropy, std::log(16.0) + 1e-6);
}

}  // namespace
}  // namespace tessera
