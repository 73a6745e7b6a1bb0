// Runs of the same model whose weights go from training to rollout in every way.
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

TEST_F(Run, GatheringWholeTensorsTrainsTheSameModel) {
  ASSERT_EQ(train("minimal", 3), 0);
  ASSERT_EQ(train("full", 3, "--reshard full"), 0);
  EXPECT_EQ(text_of(folder_ / "minimal/samples.jsonl"), text_of(folder_ / "full/samples.jsonl"));
  EXPECT_EQ(run("compare " + at("full/plan.json") + " " + at("full")), 0);
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

}  // namespace
}  // namespace tessera
