// Servers of a run that are lost: killed and stopped between steps, as weights come to them and as
// they generate. What the run says afterwards must be what it says without.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "tests/cli/called.h"
#include "tests/cli/programs.h"
#include "tests/executor/python_oracle.h"
#include "tests/executor/vllm/verify/served_weights.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LostServer : public ProgramTest {
 protected:
  void SetUp() override {
    python_ = python_with("torch");
    if (python_.empty()) GTEST_SKIP() << "no Python with torch";
    ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
  }
  void TearDown() override {
    for (const char* name : {"FAKE_VLLM_FAULT", "FAKE_VLLM_ONCE"}) ::unsetenv(name);
  }

  static std::string rollout(const std::string& key, const std::string& value) {
    return " --set 'actor_rollout_ref.rollout." + key + "=" + value + "'";
  }

  /// Three steps, of which none goes on from an earlier run.
  Called generate(const std::string& name, const std::string& more = "",
                  const std::string& plan = "plan.json") const {
    return call(
        "run " + at(plan) + " --config grpo-digits --set 'data.train_files=[" +
        at("prompts.jsonl") + "]' --set trainer.total_training_steps=3" +
        rollout("engine", "vllm") +
        rollout("vllm.program",
                "[" + python_ + ", " TESSERA_SOURCE_DIR "/tests/executor/vllm/fake_vllm.py]") +
        " --set algorithm.rollout_correction.rollout_is=token" + more + " -o " + at(name));
  }

  /// A server that a run can join, with the fault of the environment.
  std::unique_ptr<VllmServer> serve(const std::string& log) const {
    return serve_folder(python_, at("model"), 2,
                        {"--load-format", "dummy", "--dtype", "float32", "--max-model-len", "64"},
                        folder_ / log);
  }

  /// The fault, once in the run.
  static void once(const std::string& fault) {
    std::ofstream(folder_ / "once") << fault;
    ::setenv("FAKE_VLLM_ONCE", at("once").c_str(), 1);
    ::setenv("FAKE_VLLM_FAULT", fault.c_str(), 1);
  }

  static std::string samples(const std::string& name) {
    return text_of(folder_ / name / "samples.jsonl");
  }

  /// Those of a run that loses nothing.
  std::string sound() const {
    if (!fs::exists(folder_ / "sound")) {
      EXPECT_EQ(generate("sound").code, 0);
    }
    return samples("sound");
  }

  static void plan(const std::string& name, const std::string& fixed) {
    ASSERT_EQ(
        run("plan --model " + at("model") + " --cluster local-cpu --workload grpo-digits --fix " +
            fixed + " -o " + at(name + ".json")),
        0);
  }

  std::string python_;
};

// Every fault in every phase stands in tests/executor/vllm/restart_test.cc; here is what a run
// makes of a few.
TEST_F(LostServer, SamplesAreThoseOfARunThatLostNoServer) {
  const std::string expected = sound();
  ASSERT_FALSE(expected.empty());
  for (const auto& [fault, told] :
       std::vector<std::pair<std::string, std::string>>{{"kill:300", "gen: vLLM at "},
                                                        {"kill_sleep:3", "sleep: vLLM at "},
                                                        {"stop_update:2", "reshard: vLLM at "}}) {
    once(fault);
    const std::string name = "lost-" + fault.substr(0, fault.find(':'));
    const Called called = generate(name, rollout("vllm.request_timeout_s", "8"));
    EXPECT_EQ(called.code, 0) << fault << called.out;
    EXPECT_FALSE(fs::exists(folder_ / "once")) << fault << " did not come";
    const bool killed = fault.starts_with("kill");
    EXPECT_THAT(called.out,
                AllOf(HasSubstr("of the rollout, step 2, phase " + told), HasSubstr("(pid "),
                      HasSubstr(killed ? "has ended with signal 9" : "no answer for 8 s"),
                      HasSubstr("fault "), HasSubstr("another one was started at")))
        << fault;
    EXPECT_EQ(samples(name), expected) << fault;
  }
}

// The run compares weights in its first step and every tenth; a server in another's place is
// compared in any, by its workers and by digests.
TEST_F(LostServer, OtherWeightsInTheNextServerEndTheRun) {
  for (const auto& [fault, told] : std::vector<std::pair<std::string, std::string>>{
           {"flip_anew:300", "not the trainer's weights: model.layers.0.self_attn.o_proj.weight"},
           {"flip_late:300", "model.layers.0.self_attn.o_proj.weight: "}}) {
    once(fault);
    const std::string name = fault.substr(0, fault.find(':'));
    const Called called = generate(name);
    EXPECT_EQ(called.code, 1) << called.out;
    EXPECT_THAT(called.out, HasSubstr(told));
    EXPECT_THAT(samples(name), Not(HasSubstr("\"step\":2"))) << "trained with none of its samples";
  }
}

TEST_F(LostServer, WhatTrainsApartBringsTheWeightsAnew) {
  plan("apart",
       "'placement=actor | rollout' actor.gpus=2 rollout.gpus=2 actor.tp=1 actor.pp=1 actor.zero=3 "
       "rollout.tp=2");
  ASSERT_EQ(generate("apart", "", "apart.json").code, 0);
  once("kill:700");
  const Called called = generate("lost-apart", rollout("verify_weights", "1"), "apart.json");
  EXPECT_EQ(called.code, 0) << called.out;
  EXPECT_THAT(called.out, HasSubstr("another one was started at"));
  EXPECT_EQ(samples("lost-apart"), samples("apart"));
}

// What cannot be started again ends the run with what it had trained before, and it goes on.
TEST_F(LostServer, ARunWithoutAServerEndsWithACheckpoint) {
  const auto ends = [&](const std::string& name, const std::string& more) {
    const Called called = generate(name, more);
    EXPECT_EQ(called.code, 69) << called.out;
    EXPECT_TRUE(fs::exists(folder_ / name / "checkpoints/global_step_1")) << called.out;
    return called.out;
  };
  once("gone:300");
  EXPECT_THAT(ends("gone", ""),
              AllOf(HasSubstr("step 2, phase gen: vLLM at"), HasSubstr("signal 9"),
                    HasSubstr("ended before it was ready"), HasSubstr("Free memory on device"),
                    Not(HasSubstr("another one was started"))));
  ::unsetenv("FAKE_VLLM_ONCE");
  ::setenv("FAKE_VLLM_FAULT", "kill_update:2", 1);
  EXPECT_THAT(ends("updated", rollout("vllm.restarts", "0")),
              AllOf(HasSubstr("step 2, phase reshard: vLLM at"), HasSubstr("signal 9")));
  ::unsetenv("FAKE_VLLM_FAULT");
  for (const std::string name : {"gone", "updated"}) {
    EXPECT_EQ(generate(name, " --set trainer.resume_mode=auto").code, 0);
    EXPECT_EQ(samples(name), sound());
  }
}

// Servers that the run has joined are not its own: it says which is lost, and goes on with others.
TEST_F(LostServer, ARunThatHasJoinedServersEndsWithACheckpoint) {
  const auto other = serve("other.log");
  ::setenv("FAKE_VLLM_FAULT", "stop_update:2", 1);
  const auto lost = serve("lost.log");
  ::unsetenv("FAKE_VLLM_FAULT");
  const Called called = generate(
      "joined",
      rollout("vllm.request_timeout_s", "8") +
          rollout("vllm.servers", "[\"" + other->address() + "\", \"" + lost->address() + "\"]"));
  EXPECT_EQ(called.code, 69) << called.out;
  EXPECT_THAT(called.out, AllOf(HasSubstr("replica 1 of the rollout, step 2, phase "),
                                HasSubstr("vLLM at " + lost->address() +
                                          ": POST /collective_rpc: no answer for 8 s"),
                                Not(HasSubstr("another one was started"))));
  EXPECT_TRUE(fs::exists(folder_ / "joined/checkpoints/global_step_1"));
  EXPECT_TRUE(HttpConnection(other->address()).get("/health", 5).ok());
  lost->stop();
  EXPECT_EQ(generate("joined", " --set trainer.resume_mode=auto").code, 0);
  EXPECT_EQ(samples("joined"), sound());
}

TEST_F(LostServer, RestartsEndWithTheirNumber) {
  ::setenv("FAKE_VLLM_FAULT", "kill:20", 1);  // every server, again and again
  const Called called = generate("again", rollout("vllm.restarts", "1"));
  EXPECT_EQ(called.code, 69) << called.out;
  EXPECT_THAT(called.out, AllOf(HasSubstr("0 more may be"), HasSubstr("signal 9")));
}

TEST_F(LostServer, ServersThatAreSentTheirWeightsEndTheRunInOrder) {
  plan("apart",
       "'placement=actor | rollout' actor.gpus=2 rollout.gpus=2 actor.tp=1 actor.pp=1 actor.zero=3 "
       "rollout.tp=2");
  const std::string sent = rollout("vllm.weights", "messages");
  ::setenv("FAKE_VLLM_FAULT", "kill_update:2", 1);
  const Called called = generate("sent", sent, "apart.json");
  EXPECT_EQ(called.code, 69) << called.out;
  EXPECT_THAT(called.out, HasSubstr("signal 9"));
  EXPECT_TRUE(fs::exists(folder_ / "sent/checkpoints/global_step_1")) << called.out;
  ::unsetenv("FAKE_VLLM_FAULT");
  const Called refused = generate("refused", sent + rollout("vllm.restarts", "1"), "apart.json");
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.out, HasSubstr("0 with 'weights: messages'"));
}

}  // namespace
}  // namespace tessera
