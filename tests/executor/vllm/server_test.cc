// Servers as processes, driven over HTTP: a fake that speaks vLLM's protocol (fake_vllm.py), sound
// and with every fault that it can have.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "cost_models/documents/problem.h"
#include "executor/comm/thread_communicator.h"
#include "executor/vllm/requests/generate_call.h"
#include "tests/executor/vllm/served_rollout.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class VllmServers : public ServedRollout {
 protected:
  void SetUp() override {
    ServedRollout::SetUp();
    options_.restarts = 0;
  }

  /// One step from the start of the server to its end, on a rank of its own.
  std::vector<Sequence> one_step() {
    const auto world = make_solo_world();
    VllmRollout servers(*world, setting(), options_);
    servers.attach(block_.get());
    servers.move_weights();
    std::vector<Sequence> sequences = samples_of(servers, 1);
    servers.sleep();
    return sequences;
  }

  /// What the step ends with under a fault of the fake.
  std::string fault(const std::string& kind) {
    ::setenv("FAKE_VLLM_FAULT", kind.c_str(), 1);
    try {
      one_step();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

// All of the probability that min-p leaves is the most likely token's: samples of a prompt agree.
TEST_F(VllmServers, MinPIsPassedOn) {
  rollout_.sampling.min_p = 1;
  const std::vector<Sequence> sequences = one_step();
  ASSERT_EQ(sequences.size(), 12U);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_EQ(sequences[i].response, sequences[i / 3 * 3].response) << i;
  }
}

TEST_F(VllmServers, SamplesAreTheirPromptsUnderAnyLimits) {
  const std::vector<Sequence> together = one_step();
  ASSERT_EQ(together.size(), 12U);
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_EQ(together[i].prompt_index, static_cast<std::int32_t>(i / 3));
    EXPECT_EQ(together[i].sample_index, static_cast<std::int32_t>(i % 3));
    EXPECT_EQ(together[i].rollout_log_prob.size(), together[i].response.size());
  }
  EXPECT_NE(together[0].response, together[1].response);
  for (TokenPrompt& prompt : prompts_) prompt.limits.assign(3, 6);
  const std::vector<Sequence> apart = one_step();
  ASSERT_EQ(apart.size(), together.size());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(apart[i].response, together[i].response) << i;
  }
  // Another step draws other tokens, shorter limits cut the same ones.
  for (TokenPrompt& prompt : prompts_) prompt.limits.assign(3, 2);
  const std::vector<Sequence> cut = one_step();
  for (std::size_t i = 0; i < cut.size(); ++i) {
    std::vector<std::int32_t> begin = together[i].response;
    begin.resize(std::min<std::size_t>(2, begin.size()));
    EXPECT_EQ(cut[i].response, begin) << i;
  }
}

// The same weights, so the same bits of log-probs; and new ones in a second step.
TEST_F(VllmServers, WeightsThatAreSentAreThoseThatAreMapped) {
  const std::vector<Sequence> mapped = one_step();
  options_.transport = WeightTransport::messages;
  EXPECT_EQ(one_step(), mapped);

  const auto world = make_solo_world();
  VllmRollout servers(*world, setting(), options_);
  servers.attach(block_.get());
  servers.move_weights();
  EXPECT_EQ(samples_of(servers, 1), mapped);
  servers.sleep();
  auto* const values = static_cast<float*>(block_->data());
  for (std::int64_t i = 0; i < block_->bytes() / 4; ++i) values[i] = -values[i];
  const ReshardReport moved = servers.move_weights();
  EXPECT_EQ(moved.transport, ReshardTransport::send_recv);
  EXPECT_NE(samples_of(servers, 1), mapped);
}

// Ranks that `tessera run --ranks` or torchrun started have such variables of their own.
TEST_F(VllmServers, VariablesOfTheLauncherDoNotReachTheServer) {
  const std::map<std::string, std::string> launched = {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                       {"MASTER_ADDR", "192.0.2.1"},
                                                       {"RANK", "1"},
                                                       {"WORLD_SIZE", "2"}};
  for (const auto& [name, value] : launched) ::setenv(name.c_str(), value.c_str(), 1);
  EXPECT_EQ(fault(""), "no error");
  for (const auto& [name, value] : launched) ::unsetenv(name.c_str());
}

TEST_F(VllmServers, EveryFaultIsNamed) {
  EXPECT_THAT(fault("start"), AllOf(HasSubstr("ended before it was ready"),
                                    HasSubstr("exit code 1"), HasSubstr("Free memory on device")));
  EXPECT_THAT(fault("version"), AllOf(HasSubstr("0.8.5"), HasSubstr("drives 0.24")));
  EXPECT_THAT(fault("crash"), AllOf(HasSubstr("POST /tessera/generate"), HasSubstr("exit code 3"),
                                    HasSubstr("illegal memory access")));
  EXPECT_THAT(fault("refuse"), AllOf(HasSubstr("answered 400"), HasSubstr("top_p")));
  EXPECT_THAT(fault("short"), HasSubstr("without an end token"));
  EXPECT_THAT(fault("token"), HasSubstr("token 1048576, which the model does not have"));
  EXPECT_THAT(fault("name"), AllOf(HasSubstr("vLLM's reply to prompt"),  // no server is lost
                                   HasSubstr("log-probs of other tokens than it has drawn")));
  EXPECT_THAT(fault("unknown"), HasSubstr("vLLM's reply to prompt"));
  EXPECT_THAT(fault("stale"),
              AllOf(HasSubstr("tessera_verify"), HasSubstr("not the trainer's weights"),
                    HasSubstr("model.embed_tokens.weight")));
  options_.request_timeout_s = 2;
  EXPECT_THAT(fault("hang"), HasSubstr("no answer for 2 s"));
}

TEST_F(VllmServers, ACertificateNamesTheElementThatAWorkerHoldsOtherwise) {
  const auto certified = [&](const std::string& kind) {
    ::setenv("FAKE_VLLM_FAULT", kind.c_str(), 1);
    const auto world = make_solo_world();
    VllmSetting given = setting();
    given.verify = false;
    VllmRollout servers(*world, given, options_);
    servers.attach(block_.get());
    servers.move_weights();
    const CertificateReport report = servers.certify({&places_, block_->data()}, host_memory_ops());
    std::string text;
    for (const Problem& each : problems_of(servers.certificate(), report)) text += to_string(each);
    EXPECT_EQ(report.differing, static_cast<std::int64_t>(report.differences.size()));
    std::int64_t bytes = 0;
    for (const Parameter& row : table_->rows) bytes += volume(whole(row.shape)) * 4;
    EXPECT_EQ(report.compared, bytes);
    return text;
  };
  for (const WeightTransport way : {WeightTransport::mapped, WeightTransport::messages}) {
    options_.transport = way;
    EXPECT_EQ(certified(""), "");
    EXPECT_THAT(certified("flip"), AllOf(HasSubstr("rank 0, rollout"),
                                         HasSubstr("model.layers.0.self_attn.o_proj.weight"),
                                         HasSubstr("bytes 212 to 215 of its 1024 differ")));
  }
}

TEST_F(VllmServers, AServerThatIsNotThereIsNamed) {
  options_.program = {"no-such-vllm"};
  EXPECT_THAT(fault(""), HasSubstr("no-such-vllm: No such file"));
  options_.servers = {"http://127.0.0.1:" + std::to_string(free_port())};
  options_.start_timeout_s = 0.5;
  EXPECT_THAT(fault(""),
              AllOf(HasSubstr(options_.servers[0]), HasSubstr("refused the connection")));
}

TEST_F(VllmServers, ARunningServerIsJoinedAndStaysAStartedOneEnds) {
  const auto world = make_solo_world();
  const VllmSetting given = setting();
  VllmServer running({.model = given.model,
                      .dtype = "float32",
                      .logprobs_mode = "raw_logprobs",
                      .max_model_len = 14,
                      .max_num_seqs = 16,
                      .program = options_.program,
                      .log = folder_.path / "running.log"});
  running.await_ready(120);
  VllmOptions joining = options_;
  joining.servers = {running.address()};
  std::vector<Sequence> sequences;
  {
    VllmRollout servers(*world, given, joining);
    servers.attach(block_.get());
    servers.move_weights();
    sequences = samples_of(servers, 1);
  }
  EXPECT_EQ(sequences, one_step());
  HttpConnection connection(running.address());
  EXPECT_TRUE(connection.get("/health", 5).ok());
  running.stop();
  EXPECT_EQ(HttpConnection(running.address()).get("/health", 5).fault, HttpFault::refused);
}

TEST(GenerateCall, TheRouteGivesUpWhatNobodyAwaits) {
  const std::string python = python_with("torch");
  if (python.empty()) GTEST_SKIP() << "no Python with torch";
  ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
  EXPECT_EQ(run_python(python, TESSERA_SOURCE_DIR "/tests/executor/vllm/serve_oracle.py"), 0);
}

TEST(GenerateCall, LogProbsAreOfAllTokensAtTheTemperatureOrRefused) {
  EXPECT_STREQ(logprobs_mode({.temperature = 1, .top_k = 5, .top_p = 0.9}), "raw_logprobs");
  EXPECT_STREQ(logprobs_mode({.temperature = 0.7}), "processed_logprobs");
  EXPECT_EQ(logprobs_mode({.temperature = 0.7, .top_k = 5}), nullptr);
  EXPECT_EQ(logprobs_mode({.temperature = 0.7, .top_p = 0.9}), nullptr);
  EXPECT_EQ(logprobs_mode({.temperature = 0.7, .min_p = 0.1}), nullptr);
}

}  // namespace
}  // namespace tessera
