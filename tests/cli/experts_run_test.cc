// A tiny mixture of experts from random weights to learned digits on four CPU ranks, as a user runs
// it; what its plans may not ask.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

constexpr const char* kConfig = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu",
  "attention_bias": false, "bos_token_id": null, "eos_token_id": 11, "pad_token_id": 10,
  "hidden_size": 64, "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2,
  "num_hidden_layers": 2, "intermediate_size": 176, "initializer_range": 0.125,
  "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 96,
  "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [],
  "max_position_embeddings": 128, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
  "use_sliding_window": false, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "float32", "vocab_size": 16
})";

class ExpertsRun : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    fs::create_directories(folder_ / "shape");
    std::ofstream(folder_ / "shape/config.json") << kConfig;
    ASSERT_EQ(run("init-model --model " + at("shape") + " --digits --seed 1 -o " + at("experts")),
              0);
  }

  static int plan(const std::string& name, const std::string& fixed,
                  const std::string& workload = "grpo-digits") {
    return run("plan --model " + at("experts") + " --cluster local-cpu --workload " + workload +
               " --fix " + fixed + " -o " + at(name + ".json"));
  }

  /// Of the first step's routers, whose weights are every layout's.
  static double z_loss(const std::string& name) {
    Problems problems;
    const auto steps = read_metrics(folder_ / name / "metrics.jsonl", problems);
    if (!steps || steps->empty() || !steps->front().data.contains("actor/router_z_loss")) return 0;
    return steps->front().data.at("actor/router_z_loss");
  }
};

TEST_F(ExpertsRun, GrpoLearnsDigitsWithExpertsOnTwoRanks) {
  ASSERT_EQ(plan("ep2", "actor.tp=1 actor.pp=1 actor.ep=2 actor.zero=0 rollout.tp=2 rollout.dp=2"),
            0);
  EXPECT_NE(text_of(folder_ / "ep2.json").find("\"ep\": 2"), std::string::npos);
  ASSERT_EQ(train("ep2", 40, "", "ep2.json"), 0);
  const std::vector<double> reward = rewards("ep2");
  ASSERT_EQ(reward.size(), 40u);
  EXPECT_LT(reward[0], 0.15) << "random weights answer by chance";
  EXPECT_GT(mean_of_last(reward, 5), 0.4);
  EXPECT_EQ(run("compare " + at("ep2.json") + " " + at("ep2")), 0);
}

/// Every layout draws the first step's samples and stays near the others' rewards, with the
/// routers' load-balancing loss or without it.
TEST_F(ExpertsRun, EveryTrainingLayoutLearnsTheSame) {
  const std::string balance = "--set actor_rollout_ref.actor.router_aux_loss_coef=";
  const auto rewards_in = [&](const std::string& name, const std::string& fixed,
                              const std::string& more) {
    EXPECT_EQ(plan(name, fixed), 0) << fixed;
    EXPECT_EQ(train(name, 4, more, name + ".json"), 0) << fixed;
    EXPECT_EQ(run("compare " + at(name + ".json") + " " + at(name)), 0) << fixed;
    return rewards(name);
  };
  const std::string rollout = " rollout.tp=2 rollout.dp=2";
  const std::vector<double> want =
      rewards_in("plain", "actor.tp=1 actor.pp=1 actor.ep=1 actor.zero=0" + rollout, "");
  for (const auto& [name, fixed] : std::vector<std::pair<std::string, std::string>>{
           {"fsdp", "actor.tp=1 actor.pp=1 actor.ep=1 actor.zero=3"},
           {"zero1", "actor.tp=2 actor.pp=1 actor.ep=1 actor.etp=2 actor.zero=1"},
           {"ep4", "actor.tp=1 actor.pp=1 actor.ep=4 actor.zero=0"},
           {"ep4-fsdp", "actor.tp=1 actor.pp=1 actor.ep=4 actor.zero=3"},
           {"ep4-tp2", "actor.tp=2 actor.pp=1 actor.ep=4 actor.etp=1 actor.zero=0"},
           {"ep2-pp2", "actor.tp=1 actor.pp=2 actor.ep=2 actor.zero=0"},
           {"ep2-etp2", "actor.tp=2 actor.pp=1 actor.ep=2 actor.etp=2 actor.zero=0"}}) {
    const bool balanced = name == "ep4" || name == "fsdp" || name == "ep2-pp2";
    const std::vector<double> got =
        rewards_in(name, fixed + rollout, balanced ? balance + "1e-4" : "");
    ASSERT_EQ(got.size(), want.size()) << name;
    EXPECT_EQ(got[0], want[0]) << name;
    for (std::size_t i = 1; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.02) << name;
    EXPECT_EQ(text_of(folder_ / name / "metrics.jsonl").find("actor/router_aux_loss") !=
                  std::string::npos,
              balanced)
        << name;
  }
}

/// Experts dealt out in generation, from training with other ones: the first step's samples are
/// those of replicas that hold all experts, what moves is what the plan counted, and the rollout's
/// weights are proven.
TEST_F(ExpertsRun, EveryRolloutLayoutSaysTheSame) {
  const auto rewards_in = [&](const std::string& name, const std::string& fixed) {
    EXPECT_EQ(plan(name, fixed), 0) << fixed;
    const std::string set =
        "--set actor_rollout_ref.rollout.verify_weights=1"
        " --set actor_rollout_ref.actor.router_z_loss_coef=1e-4";
    EXPECT_EQ(train(name, 3, set, name + ".json"), 0) << fixed;
    EXPECT_EQ(run("compare " + at(name + ".json") + " " + at(name)), 0) << fixed;
    return rewards(name);
  };
  const std::string plain = "actor.tp=1 actor.pp=1 actor.ep=1 actor.zero=0 ";
  const std::string spread = "actor.tp=2 actor.pp=1 actor.ep=2 actor.etp=2 actor.zero=0 ";
  const std::vector<double> want = rewards_in("whole", plain + "rollout.tp=1 rollout.dp=4");
  for (const auto& [name, fixed] : std::vector<std::pair<std::string, std::string>>{
           {"serve-ep4", spread + "rollout.tp=1 rollout.dp=4 rollout.ep=4"},
           {"serve-ep2", plain + "rollout.tp=1 rollout.dp=4 rollout.ep=2"},
           {"serve-ep2-tp2", spread + "rollout.tp=2 rollout.dp=2 rollout.ep=2 rollout.etp=2"},
           {"serve-ep4-tp2", spread + "rollout.tp=2 rollout.dp=2 rollout.ep=4 rollout.etp=1"}}) {
    const std::vector<double> got = rewards_in(name, fixed);
    ASSERT_EQ(got.size(), want.size()) << name;
    EXPECT_EQ(got[0], want[0]) << name;
    for (std::size_t i = 1; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.02) << name;
    EXPECT_GT(z_loss(name), 0.1) << name;
    EXPECT_NEAR(z_loss(name), z_loss("whole"), 1e-5 * z_loss("whole")) << name;
  }
}

/// Routing replay: rollout, old policy and update choose alike where a step updates once, so that
/// a run says and learns what it does without; an expert noted for another token would be counted.
TEST_F(ExpertsRun, ReplaysTheExpertsOfTheOldPolicyOrOfTheRollout) {
  std::ofstream(at("once.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 32\n"
                                 << "samples_per_prompt: 16\nprompt_tokens: 8\n"
                                 << "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                 << "mini_batches: 1\nepochs: 1\nkl: none\n";
  const std::string actor = "actor.tp=2 actor.pp=2 actor.ep=1 actor.etp=2 actor.zero=0";
  ASSERT_EQ(plan("replay", actor + " rollout.tp=2 rollout.dp=2 rollout.ep=4 rollout.etp=1",
                 at("once.yaml")),
            0);
  const auto mismatch = [&](const std::string& name, const std::string& mode) {
    EXPECT_EQ(train(name, 2, mode, "replay.json"), 0);
    std::vector<double> shares;
    Problems problems;
    const auto steps = read_metrics(folder_ / name / "metrics.jsonl", problems);
    for (const StepNumbers& step : steps.value()) {
      const auto share = step.data.find("actor/router_replay_mismatch_fraction");
      if (share != step.data.end()) shares.push_back(share->second);
    }
    return shares;
  };
  EXPECT_TRUE(mismatch("no-replay", "").empty());
  for (const std::string mode : {"R2", "R3"}) {
    SCOPED_TRACE(mode);
    const std::vector<double> shares =
        mismatch(mode, "--set actor_rollout_ref.actor.router_replay.mode=" + mode);
    ASSERT_EQ(shares.size(), 2u);
    // Two experts that are equally likely may change places by rounding.
    for (const double share : shares) EXPECT_LE(share, mode == "R2" ? 0 : 0.001);
    const std::vector<double> got = rewards(mode), want = rewards("no-replay");
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(got[0], want[0]);
    EXPECT_NEAR(got[1], want[1], 0.02);
  }
}

/// A recorded rollout with its experts is trained as the run that generated it trained, under
/// another layout up to rounding; what is replayed are the record's experts.
TEST_F(ExpertsRun, ARecordedRolloutIsReplayedWithItsExperts) {
  std::ofstream(at("record.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 32\n"
                                   << "samples_per_prompt: 4\nprompt_tokens: 8\n"
                                   << "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                   << "mini_batches: 1\nepochs: 1\nkl: none\n";
  const std::string rollout = " rollout.tp=2 rollout.dp=2";
  ASSERT_EQ(plan("recording", "actor.tp=2 actor.pp=2 actor.ep=1 actor.etp=2 actor.zero=0" + rollout,
                 at("record.yaml")),
            0);
  ASSERT_EQ(plan("replaying", "actor.tp=1 actor.pp=2 actor.ep=2 actor.zero=0" + rollout,
                 at("record.yaml")),
            0);
  const std::string r3 = "--set actor_rollout_ref.actor.router_replay.mode=R3 ";
  ASSERT_EQ(train("recorded", 2, r3 + "--set actor_rollout_ref.actor.router_replay.record=true",
                  "recording.json"),
            0);
  const auto numbers = [&](const std::string& name, const std::string& key) {
    Problems problems;
    std::vector<double> values;
    const auto steps = read_metrics(folder_ / name / "metrics.jsonl", problems);
    for (const StepNumbers& step : steps.value()) {
      const auto found = step.data.find(key);
      EXPECT_NE(found, step.data.end()) << key << " of " << name << ", step " << step.step;
      values.push_back(found == step.data.end() ? NAN : found->second);
    }
    return values;
  };
  const auto from = [&](const std::string& file) {
    return r3 + "--set trainer.rollout_replay=" + at(file);
  };
  const std::string share = "actor/router_replay_mismatch_fraction";
  ASSERT_EQ(train("same", 2, from("recorded/samples.jsonl"), "recording.json"), 0);
  for (const char* key : {"actor/pg_loss", "actor/grad_norm", share.c_str()}) {
    EXPECT_EQ(numbers("same", key), numbers("recorded", key)) << key;
  }
  ASSERT_EQ(train("other", 1, from("recorded/samples.jsonl"), "replaying.json"), 0);
  EXPECT_LE(numbers("other", share)[0], 0.001);
  const double norm = numbers("recorded", "actor/grad_norm")[0];
  EXPECT_NEAR(numbers("other", "actor/grad_norm")[0], norm, 1e-3 * norm);

  // Every choice is one that no router makes: all the same two experts.
  std::ifstream in(at("recorded/samples.jsonl"));
  std::ofstream constant(at("constant.jsonl")), without(at("without.jsonl"));
  for (std::string line; std::getline(in, line);) {
    auto sample = nlohmann::json::parse(line);
    auto& experts = sample.at("routed_experts");
    for (std::size_t i = 0; i < experts.size(); ++i) experts[i] = i % 2;
    constant << sample.dump() << "\n";
    sample.erase("routed_experts");
    without << sample.dump() << "\n";
  }
  constant.close();
  without.close();
  ASSERT_EQ(train("constant", 1, from("constant.jsonl"), "recording.json"), 0);
  EXPECT_GT(numbers("constant", share)[0], 0.5);
  EXPECT_EQ(train("without", 1, from("without.jsonl"), "recording.json"), 65);
}

TEST_F(ExpertsRun, ARunGoesOnUnderAnotherLayoutAsItWas) {
  const std::string rollout = " rollout.tp=1 rollout.dp=4";
  ASSERT_EQ(plan("from", "actor.tp=1 actor.pp=1 actor.ep=4 actor.zero=0" + rollout), 0);
  ASSERT_EQ(plan("to", "actor.tp=2 actor.pp=1 actor.ep=1 actor.etp=2 actor.zero=3" + rollout), 0);
  ASSERT_EQ(train("unmoved", 4, "", "from.json"), 0);
  ASSERT_EQ(train("moved", 2, "--set trainer.save_freq=1 --resume", "from.json"), 0);
  ASSERT_EQ(train("moved", 4, "--set trainer.save_freq=1 --resume", "to.json"), 0);
  const std::vector<double> want = rewards("unmoved"), got = rewards("moved");
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.02);
}

TEST_F(ExpertsRun, WhatDoesNotRunIsRefusedByThePlanner) {
  const std::string rest = "actor.pp=1 rollout.dp=4";
  const auto said = [&](const std::string& fixed) {
    const std::string command = kTessera + " plan --model " + at("experts") +
                                " --cluster local-cpu --workload grpo-digits --fix " + fixed +
                                " >" + at("said.txt") + " 2>&1";
    EXPECT_NE(std::system(command.c_str()), 0);
    return text_of(folder_ / "said.txt");
  };
  const std::string shared = "actor.tp=2 actor.dp=2 actor.pp=1 actor.ep=1 actor.etp=1 actor.zero=1";
  EXPECT_THAT(said("rollout.tp=4 rollout.ep=1 rollout.etp=3"),
              ::testing::HasSubstr("which has etp = tp (not ep 1, etp 3 with tp 4;"));
  EXPECT_THAT(said(shared),
              ::testing::HasSubstr("which has etp = tp (not ep 1, etp 1 with tp 2 beside zero 1;"));
  EXPECT_NE(plan("no", "actor.tp=1 actor.ep=2 actor.zero=3 " + rest), 0);
  EXPECT_NE(plan("no", shared + " rollout.dp=4"), 0);
  EXPECT_NE(plan("no", "actor.pp=1 rollout.tp=4 rollout.ep=1 rollout.etp=3"), 0);
  EXPECT_FALSE(fs::exists(folder_ / "no.json"));
}

}  // namespace
}  // namespace tessera
