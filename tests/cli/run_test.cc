// The programs as a user calls them: plan, run on four CPU ranks, compare.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

class Run : public ProgramTest {};

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

TEST_F(Run, GatheringWholeTensorsTrainsTheSameModel) {
  ASSERT_EQ(train("minimal", 3), 0);
  ASSERT_EQ(train("full", 3, "--reshard full"), 0);
  EXPECT_EQ(text_of(folder_ / "minimal/samples.jsonl"), text_of(folder_ / "full/samples.jsonl"));
  EXPECT_EQ(run("compare " + at("full/plan.json") + " " + at("full")), 0);
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

/// However weights travel, the model is the same: nothing stale, nothing lost.
TEST_F(Run, OptionsOfAReshardChangeNoSample) {
  ASSERT_EQ(train("as-planned", 4), 0);
  const std::string samples = text_of(folder_ / "as-planned/samples.jsonl");
  for (const auto& [name, words] : std::vector<std::pair<std::string, std::string>>{
           {"messages", "--reshard-transport send_recv --reshard-verify"},
           {"overlap", "--reshard-overlap"},
           {"incremental", "--reshard-incremental --reshard-verify"},
           {"unmapped", "--reshard-storage unmap"},
           {"preloaded", "--reshard-storage unmap --set reshard.preload=true --reshard-overlap"},
           {"buckets", "--set reshard.bucket_bytes=5000 --reshard-transport host"},
           {"late-wire", "--reshard-wire bf16 --set reshard.wire_from_step=5"}}) {
    ASSERT_EQ(train(name, 4, words), 0) << name;
    EXPECT_EQ(text_of(folder_ / name / "samples.jsonl"), samples) << name;
    EXPECT_EQ(run("compare " + at("plan.json") + " " + at(name)), 0) << name;
  }
}

/// What the plan says of the rollout's memory needs no option of the run.
TEST_F(Run, APlanThatUnmapsTheRolloutTrainsTheSameModel) {
  ASSERT_EQ(run("plan --model " + at("model") +
                " --cluster local-cpu --workload grpo-digits --fix actor.tp=2 actor.pp=2 "
                "rollout.tp=2 rollout.dp=2 rollout.offload=all -o " +
                at("unmap.json")),
            0);
  EXPECT_NE(text_of(folder_ / "unmap.json").find("\"keep\": false"), std::string::npos);
  ASSERT_EQ(train("kept", 2), 0);
  ASSERT_EQ(train("unmap", 2, "", "unmap.json"), 0);
  EXPECT_EQ(text_of(folder_ / "unmap/samples.jsonl"), text_of(folder_ / "kept/samples.jsonl"));
  EXPECT_EQ(run("compare " + at("unmap.json") + " " + at("unmap")), 0);
  EXPECT_EQ(train("refused", 2, "--reshard-storage keep", "unmap.json"), 65);
}

TEST_F(Run, ARolloutOnRanksOfItsOwnGetsItsWeightsThere) {
  EXPECT_EQ(run("plan --model " + at("model") +
                " --cluster local-cpu --workload grpo-digits --fix 'placement=actor | rollout' "
                "actor.gpus=2 rollout.gpus=2 -o " +
                at("apart.json")),
            0);
  ASSERT_EQ(train("apart", 4, "", "apart.json"), 0);
  ASSERT_EQ(train("together", 4), 0);
  EXPECT_EQ(run("compare " + at("apart.json") + " " + at("apart")), 0);
  const std::vector<double> got = rewards("apart"), want = rewards("together");
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(got[0], want[0]);
  for (std::size_t i = 1; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.02);
}

/// Training weights in the memory of the rollout, against two memories (unmap).
TEST_F(Run, OneMemoryOfActorAndRolloutChangesNoBit) {
  ASSERT_EQ(
      run("init-model --model tiny-qwen2-digits --digits --seed 1 --dtype bf16 -o " + at("bf16")),
      0);
  for (const auto& [name, model, fixed] : std::vector<std::array<std::string, 3>>{
           {"cut", "model", "actor.tp=2 actor.pp=1 actor.zero=1 rollout.tp=1 rollout.dp=4"},
           {"narrow", "bf16", "actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2"},
           {"split", "bf16", "'placement=actor | rollout' actor.gpus=2 rollout.gpus=2"}}) {
    ASSERT_EQ(
        run("plan --model " + at(model) + " --cluster local-cpu --workload grpo-digits --fix " +
            fixed + " -o " + at(name + ".json")),
        0);
    const auto result = [&, plan = name + ".json"](const std::string& folder,
                                                   const std::string& words) {
      EXPECT_EQ(train(folder, 3, words, plan), 0) << folder;
      return text_of(folder_ / folder / "samples.jsonl") +
             text_of(folder_ / folder / "hf/model.safetensors");
    };
    const std::string want = result(name + "-two", "--reshard-storage unmap");
    for (const auto& [way, words] : std::vector<std::pair<std::string, std::string>>{
             {"one", "--reshard-verify"}, {"overlap", "--reshard-overlap"}}) {
      EXPECT_TRUE(want == result(name + "-" + way, words)) << name << " " << way;
      EXPECT_EQ(run("compare " + at(name + ".json") + " " + at(name + "-" + way)), 0);
    }
  }
}

TEST_F(Run, SaysWhatOneMemorySpares) {
  ASSERT_EQ(run("plan --model " + at("model") +
                " --cluster local-cpu --workload grpo-digits --fix actor.tp=2 actor.pp=1 "
                "actor.zero=1 rollout.tp=1 rollout.dp=4 -o " +
                at("spares.json")),
            0);
  const auto said = [](const std::string& name, const std::string& more) {
    EXPECT_EQ(std::system((kTessera + " run " + at("spares.json") +
                           " --config grpo-digits --set 'data.train_files=[" + at("prompts.jsonl") +
                           "]' --set trainer.total_training_steps=1 " + more + " -o " + at(name) +
                           " >/dev/null 2>" + at(name + ".txt"))
                              .c_str()),
              0);
    return text_of(folder_ / (name + ".txt")).find("[Memory] training weights lie in") !=
           std::string::npos;
  };
  EXPECT_TRUE(said("spares", ""));
  EXPECT_FALSE(said("spares-nothing", "--reshard-storage unmap"));
}

TEST_F(Run, ANarrowWireHalvesTheBytesAndTellsItsError) {
  ASSERT_EQ(train("wire", 3, "--reshard-wire bf16 --set reshard.wire_from_step=3"), 0);
  Problems problems;
  const auto steps = read_metrics(folder_ / "wire/metrics.jsonl", problems);
  ASSERT_EQ(steps.value().size(), 3u);
  const auto& before = steps.value()[1].data;
  const auto& after = steps.value()[2].data;
  EXPECT_EQ(after.at("reshard/bytes") * 2, before.at("reshard/bytes"));
  EXPECT_EQ(after.at("reshard/spared_bytes"), after.at("reshard/bytes"));
  EXPECT_EQ(before.at("reshard/cast_error"), 0);
  EXPECT_GT(after.at("reshard/cast_error"), 1e-4);  // half a unit of 8 bits: 2^-9 at most
  EXPECT_LT(after.at("reshard/cast_error"), 1.0 / 256);
  EXPECT_EQ(run("compare " + at("plan.json") + " " + at("wire")), 0);
}

/// Shards of FSDP are read where they lie, not sent.
TEST_F(Run, ShardsOfFsdpAreReadByTheirPeers) {
  ASSERT_EQ(run("plan --model " + at("model") +
                " --cluster local-cpu --workload grpo-digits --fix actor.tp=1 actor.pp=1 "
                "actor.zero=3 rollout.tp=2 rollout.dp=2 -o " +
                at("shards.json")),
            0);
  ASSERT_EQ(train("shards", 3,
                  "--reshard-transport host --reshard-verify "
                  "--set actor_rollout_ref.rollout.verify_weights=2",
                  "shards.json"),
            0);
  ASSERT_EQ(train("sent", 3, "--reshard-transport send_recv", "shards.json"), 0);
  ASSERT_EQ(train("early", 3, "--reshard-overlap", "shards.json"), 0);
  EXPECT_EQ(text_of(folder_ / "shards/samples.jsonl"), text_of(folder_ / "sent/samples.jsonl"));
  EXPECT_EQ(text_of(folder_ / "shards/samples.jsonl"), text_of(folder_ / "early/samples.jsonl"));
  Problems problems;
  const auto steps = read_metrics(folder_ / "shards/metrics.jsonl", problems);
  for (const StepNumbers& step : steps.value()) {
    EXPECT_EQ(step.data.at("reshard/by_reading_peers"), 1);
    EXPECT_EQ(step.data.at("reshard/verified"), 1);
    EXPECT_EQ(step.data.contains("rollout/verified_bytes"), step.step % 2 == 1);
  }
  const std::map<std::string, double>& first = steps.value()[0].data;
  // Two replicas hold the model: bytes of its file, but for the header, twice, and what tensor
  // parallelism does not cut once more.
  const auto model = static_cast<double>(fs::file_size(folder_ / "model/model.safetensors"));
  EXPECT_GT(first.at("rollout/verified_bytes"), 1.9 * model);
  EXPECT_LT(first.at("rollout/verified_bytes"), 2.5 * model);
  EXPECT_EQ(first.at("rollout/shared_bytes"), 0);
  EXPECT_GT(first.at("rollout/verify_weights_s"), 0);
}

/// The model of a run as it was gathered, against the pieces that ranks saved of it.
TEST_F(Run, VerifyWeightsComparesAModelWithCheckpoints) {
  ASSERT_EQ(train("saved", 2, "--set trainer.save_freq=1"), 0);
  const auto verify = [](const std::string& a, const std::string& b, const std::string& more = "") {
    return run("verify-weights " + at(a) + " " + at(b) + " " + more);
  };
  const std::string first = "saved/checkpoints/global_step_1",
                    last = "saved/checkpoints/global_step_2";
  EXPECT_EQ(verify("saved/hf", last), 0);
  EXPECT_EQ(verify(last, "saved/hf", "--json"), 0);
  EXPECT_EQ(verify(last, last), 0);
  EXPECT_EQ(verify(first, last), 1);
  EXPECT_EQ(verify("saved/hf", first), 1);
  EXPECT_EQ(verify("model", last), 1);
  EXPECT_EQ(verify("saved/hf", last, "--role critic"), 65);
  EXPECT_EQ(verify("saved/hf", "nothing"), 65);
  EXPECT_EQ(verify("saved/hf", last, "--as int8"), 64);
  // Outside its run a checkpoint lies as the other folder's config.json says.
  fs::create_directories(folder_ / "moved");
  fs::copy(folder_ / last, folder_ / "moved/global_step_2", fs::copy_options::recursive);
  EXPECT_EQ(verify("saved/hf", "moved/global_step_2"), 0);
  EXPECT_EQ(verify("moved/global_step_2", last), 65);

  fs::copy(folder_ / "saved/hf", folder_ / "flipped", fs::copy_options::recursive);
  std::fstream file(folder_ / "flipped/model.safetensors", std::ios::in | std::ios::out);
  file.seekg(-1, std::ios::end);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(byte);
  file.close();
  const std::string words =
      kTessera + " verify-weights " + at("flipped") + " " + at(last) + " > " + at("said.txt");
  EXPECT_EQ(WEXITSTATUS(std::system(words.c_str())), 1);
  EXPECT_THAT(text_of(folder_ / "said.txt"),
              testing::MatchesRegex(".+: 1 element differs, bytes [0-9]+ to [0-9]+ of [0-9]+\n"
                                    "1 of [0-9]+ tensors differ\n"));
}

/// Where ranks have near and far holders to receive from, plan and ranks choose the same.
TEST_F(Run, APlanOverSeveralNodesIsCarriedOutAsPlanned) {
  std::ofstream(folder_ / "nodes.yaml") << R"(version: 1
name: two-nodes
gpu: cpu
memory_gib: 1
peak_tflops_bf16: 0.02
hbm_gb_s: 5
gpus_per_node: 2
nodes: 2
intra_node: {link: shared memory, gb_s_per_gpu_one_way: 1}
inter_node: {fabric: Ethernet, nics_per_node: 2, gbit_s_per_nic: 8}
)";
  for (const std::string mode : {"minimal", "full"}) {
    const std::string plan = mode + "-nodes.json";
    ASSERT_EQ(
        run("plan --model " + at("model") + " --cluster " + at("nodes.yaml") +
            " --workload grpo-digits --fix actor.tp=2 actor.dp=2 rollout.tp=1 rollout.dp=4 -o " +
            at(plan)),
        0);
    ASSERT_EQ(train(mode + "-nodes", 2, "--reshard " + mode, plan), 0);
    EXPECT_EQ(run("compare " + at(mode + "-nodes/plan.json") + " " + at(mode + "-nodes")), 0);
  }
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
  EXPECT_FALSE(fs::exists(folder_ / "refused"));
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
