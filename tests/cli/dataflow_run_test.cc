// Workloads that state their calls themselves: in another order than the presets, with fewer calls,
// and such that nobody could carry them out.
#include <gmock/gmock.h>

#include "tests/cli/called.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr const char* kSizes =
    "prompts_per_step: 16\nsamples_per_prompt: 4\nprompt_tokens: 8\n"
    "response_tokens: {mean: 4, cv: 0, max: 4}\nmini_batches: 2\nepochs: 1\nkl: loss\n";
constexpr const char* kGen =
    "  - {call: gen, role: rollout, kind: generate, inputs: [prompts], outputs: [texts]}\n";
constexpr const char* kOld =
    "  - {call: old_log_prob, role: actor, kind: infer, inputs: [texts], outputs: [old]}\n";
constexpr const char* kRef =
    "  - {call: ref, role: reference, kind: infer, inputs: [texts], outputs: [ref]}\n";
constexpr const char* kReward =
    "  - {call: reward, role: reward, kind: compute, inputs: [texts], outputs: [scores]}\n";
constexpr const char* kAdv =
    "  - {call: adv, role: actor, kind: compute, inputs: [scores], outputs: [gains]}\n";
constexpr const char* kUpdate =
    "  - {call: update_actor, role: actor, kind: train, inputs: [texts, old, ref, gains], "
    "outputs: []}\n";

class DataflowRun : public ProgramTest {
 protected:
  /// Plans with the reference on ranks of its own: what it computes has to travel.
  static void plan(const std::string& name, const std::string& algorithm) {
    std::ofstream(at(name + ".yaml")) << "version: 1\nalgorithm: " << algorithm << kSizes;
    ASSERT_EQ(run("plan --model " + at("model") + " --cluster local-cpu --workload " +
                  at(name + ".yaml") +
                  " --fix 'placement=actor | reference' actor.gpus=2 reference.gpus=2 actor.tp=1 "
                  "actor.pp=1 reference.tp=2 rollout.tp=1 -o " +
                  at(name + ".json")),
              0)
        << name;
  }

  static void expect_same(const std::string& a, const std::string& b) {
    for (const char* file : {"samples.jsonl", "hf/model.safetensors"}) {
      ASSERT_TRUE(fs::exists(folder_ / a / file)) << a;
      EXPECT_TRUE(text_of(folder_ / a / file) == text_of(folder_ / b / file)) << a << " " << file;
    }
  }

  static constexpr const char* kRun = "--set actor_rollout_ref.actor.kl_loss_coef=0.5";
};

/// The reference's and the actor's log-probs may come before the advantages or after them.
TEST_F(DataflowRun, EveryOrderThatTheCallsAllowTrainsAlike) {
  plan("preset", "grpo\n");
  ASSERT_EQ(train("preset-run", 3, kRun, "preset.json"), 0);
  const std::vector<std::pair<std::string, std::string>> orders = {
      {"late", std::string("\n") + kGen + kReward + kAdv + kOld + kRef + kUpdate},
      {"mixed", std::string("\n") + kUpdate + kAdv + kRef + kReward + kOld + kGen}};
  for (const auto& [name, calls] : orders) {
    plan(name, calls);
    ASSERT_EQ(train(name + "-run", 3, kRun, name + ".json"), 0) << name;
    expect_same(name + "-run", "preset-run");
  }
  EXPECT_THAT(text_of(folder_ / "late.json"), testing::ContainsRegex("adv(.|\n)*\"ref\""));
}

/// In bypass mode generation itself makes what `old_log_prob` would.
TEST_F(DataflowRun, ACallThatNobodyReadsMayBeLeftOut) {
  const std::string bypass =
      std::string(kRun) + " --set algorithm.rollout_correction.bypass_mode=true";
  plan("with", "grpo\n");
  ASSERT_EQ(train("with-run", 3, bypass, "with.json"), 0);
  std::string update = kUpdate;
  update.replace(update.find("old, "), 5, "");
  plan("without", std::string("\n") + kGen + kReward + kAdv + kRef + update);
  ASSERT_EQ(train("without-run", 3, bypass, "without.json"), 0);
  expect_same("without-run", "with-run");
}

TEST_F(DataflowRun, ACallThatDoesNotFindWhatItReadsIsRefusedBeforeTheRun) {
  std::string early = kAdv;
  early.replace(early.find("[scores]"), 8, "[texts]");
  plan("early", std::string("\n") + kGen + early + kReward + kOld + kRef + kUpdate);
  const Called refused =
      call("run " + at("early.json") + " --config grpo-digits --set 'data.train_files=[" +
           at("prompts.jsonl") + "]' -o " + at("early-run"));
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.out, HasSubstr("'adv' without 'reward' before it"));
  EXPECT_FALSE(fs::exists(folder_ / "early-run"));
}

}  // namespace
}  // namespace tessera
