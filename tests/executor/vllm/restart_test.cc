// Servers that are lost in every phase: killed and stopped by themselves (fake_vllm.py). What is
// generated afterwards must be what is generated without.
#include <gmock/gmock.h>

#include "executor/comm/thread_communicator.h"
#include "tests/executor/vllm/served_rollout.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kSteps = 3;

class VllmRestart : public ServedRollout {
 protected:
  std::string certified(VllmRollout& servers) const {
    const CertificateReport report = servers.certify({&places_, block_->data()}, host_memory_ops());
    EXPECT_EQ(report.compared, table_->elements() * 4);
    std::string text;
    for (const Problem& each : problems_of(servers.certificate(), report)) text += to_string(each);
    return text;
  }

  /// What three steps generate, with other weights in each, which a certificate says that the
  /// server holds before and, where it is another one then, after.
  std::vector<Sequence> steps() {
    news_.clear();
    const auto world = make_solo_world();
    VllmRollout servers(*world, setting(), options_);
    servers.attach(block_.get());
    std::vector<Sequence> all;
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      train(step);
      servers.at_step(step);
      servers.move_weights();
      EXPECT_EQ(certified(servers), "");
      for (Sequence& each : samples_of(servers, step)) all.push_back(std::move(each));
      if (step == lost_in_generation_) {
        EXPECT_TRUE(servers.unproven());
        EXPECT_EQ(certified(servers), "");
      }
      EXPECT_FALSE(servers.unproven());
      servers.sleep();
      for (const std::string& line : servers.take_news()) news_ += line + "\n";
    }
    return all;
  }

  /// The fault, once in the run.
  void once(const std::string& fault) const {
    std::filesystem::remove(folder_.path / "vllm-0.1.log");
    const std::string file = (folder_.path / "once").string();
    std::ofstream(file) << fault;
    ::setenv("FAKE_VLLM_ONCE", file.c_str(), 1);
    ::setenv("FAKE_VLLM_FAULT", fault.c_str(), 1);
  }

  /// How the steps end under the fault.
  std::string ends(const std::string& fault, ExitCode code = ExitCode::missing) {
    ::setenv("FAKE_VLLM_FAULT", fault.c_str(), 1);
    try {
      steps();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_EQ(dynamic_cast<const ServerLost*>(&error) != nullptr, code == ExitCode::missing);
      return error.what();
    }
    return "no error";
  }

  std::int64_t lost_in_generation_ = 0;  // the step
  std::string news_;
};

// 12 samples a step: the 17th is in the midst of the second one's.
TEST_F(VllmRestart, SamplesAreThoseOfServersThatWereNotLost) {
  const std::vector<Sequence> sound = steps();
  ASSERT_EQ(sound.size(), 36U);
  EXPECT_NE(sound[0].rollout_log_prob, sound[12].rollout_log_prob) << "other weights";
  options_.request_timeout_s = 6;
  // The 3rd sleep is behind the second step, as every server sleeps once it is ready.
  for (const auto& [fault, told] : std::vector<std::pair<std::string, std::string>>{
           {"kill:17", "step 2, phase gen: vLLM at "},
           {"kill_update:2", "step 2, phase reshard: vLLM at "},
           {"kill_sleep:3", "step 2, phase sleep: vLLM at "},
           {"kill_asleep:2", "step 2, phase "},
           {"kill_wake:3", "step 2, phase reshard: vLLM at "},
           {"kill_wake:4", "step 2, phase reshard: vLLM at "},
           {"stop:17", "step 2, phase gen: vLLM at "},
           {"stop_sleep:3", "step 2, phase sleep: vLLM at "}}) {
    once(fault);
    lost_in_generation_ = told.find("gen") != std::string::npos ? 2 : 0;
    EXPECT_EQ(steps(), sound) << fault;
    EXPECT_FALSE(std::filesystem::exists(folder_.path / "once")) << fault << " did not come";
    EXPECT_THAT(news_, AllOf(HasSubstr("[Servers] replica 0 of the rollout, " + told),
                             ContainsRegex("\\(pid [0-9]+\\)"), HasSubstr("vllm-0.log ends:"),
                             HasSubstr("fault " + fault.substr(0, fault.find(':'))),
                             HasSubstr("another one was started at http://127.0.0.1:"),
                             HasSubstr("1 more may be")))
        << fault;
    const bool killed = fault.starts_with("kill");
    EXPECT_THAT(news_, HasSubstr(killed ? "has ended with signal 9" : "no answer for 6 s"))
        << fault;
    EXPECT_TRUE(std::filesystem::exists(folder_.path / "vllm-0.1.log"));
  }
}

TEST_F(VllmRestart, ServersThatNeverSleepGetTheStepsWeights) {
  options_.sleeps = false;
  const std::vector<Sequence> sound = steps();
  for (const std::string fault : {"kill:17", "kill_update:2"}) {
    once(fault);
    lost_in_generation_ = fault == "kill:17" ? 2 : 0;
    EXPECT_EQ(steps(), sound) << fault;
    EXPECT_THAT(news_, HasSubstr("another one was started at"));
  }
}

TEST_F(VllmRestart, TheyEndWithTheirNumberAndWithAnotherVersion) {
  options_.restarts = 1;
  EXPECT_THAT(ends("kill:5"), AllOf(HasSubstr("replica 0 of the rollout, step 1, phase gen: vLLM"),
                                    HasSubstr("signal 9"), HasSubstr("vllm-0.log ends:"),
                                    HasSubstr("vllm-0.1.log ends:")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "vllm-0.2.log"));
  options_.restarts = 2;
  once("gone:17");
  EXPECT_THAT(ends("gone:17"),
              AllOf(HasSubstr("step 2, phase gen: vLLM at"), HasSubstr("signal 9"),
                    HasSubstr("start: ended before it was ready; its process has ended with exit "
                              "code 1"),
                    HasSubstr("vllm-0.2.log ends:"), HasSubstr("Free memory on device")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "vllm-0.3.log"));
  std::filesystem::remove(folder_.path / "vllm-0.2.log");
  once("aged:17");
  EXPECT_THAT(ends("aged:17"),
              AllOf(HasSubstr("step 2, phase gen: vLLM at"), HasSubstr("is 0.8.5")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "vllm-0.2.log"))
      << "the next is of that version, too";
}

// A worker that holds other weights is no server that is lost: neither at first nor in another's
// place, whether or not the run compares in every step.
TEST_F(VllmRestart, WhatIsWrongIsNotStartedAgain) {
  EXPECT_THAT(ends("stale", ExitCode::check_failed), HasSubstr("not the trainer's weights"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "vllm-0.1.log"));
  once("flip_anew:17");
  EXPECT_THAT(
      ends("flip_anew:17", ExitCode::check_failed),
      AllOf(HasSubstr("step 2, phase gen: vLLM at"), HasSubstr("signal 9"),
            HasSubstr("not the trainer's weights: model.layers.0.self_attn.o_proj.weight")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "vllm-0.2.log"));
}

TEST_F(VllmRestart, ACertificateIsDueOfAServerInAnothersPlace) {
  once("flip_late:17");
  const auto world = make_solo_world();
  VllmRollout servers(*world, setting(), options_);
  servers.attach(block_.get());
  for (std::int64_t step = 1; step <= 2; ++step) {
    EXPECT_FALSE(servers.unproven());
    servers.move_weights();
    samples_of(servers, step);
    if (step == 1) servers.sleep();
  }
  EXPECT_TRUE(servers.unproven());
  EXPECT_THAT(certified(servers), AllOf(HasSubstr("model.layers.0.self_attn.o_proj.weight"),
                                        HasSubstr("bytes 212 to 215 of its 1024 differ")));
  EXPECT_FALSE(servers.unproven());
}

}  // namespace
}  // namespace tessera
