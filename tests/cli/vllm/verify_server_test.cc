// `tessera verify-weights` between the folders of a run and running vLLM servers.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/called.h"
#include "tests/cli/programs.h"
#include "tests/executor/vllm/verify/served_weights.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class VerifyServer : public ProgramTest {
 protected:
  void SetUp() override {
    python_ = python_with("transformers");
    if (python_.empty()) GTEST_SKIP() << "no Python with transformers";
    ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
    ::setenv("HF_HUB_OFFLINE", "1", 1);
  }

  std::unique_ptr<VllmServer> serve(const std::string& name, int tp,
                                    std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"--dtype", "float32"});
    return serve_folder(python_, at(name), tp, std::move(arguments), folder_ / "server.log");
  }

  static Called verify(const std::string& a, const std::string& b, const std::string& more = "") {
    return call("verify-weights " + a + " " + b + " " + more);
  }

  std::string python_;
};

// A run's last model as Hugging Face has it and as its ranks saved it, in either order; the step
// before is another one.
TEST_F(VerifyServer, ComparesFoldersAndCheckpointsWithWhatIsServed) {
  ASSERT_EQ(train("saved", 2, "--set trainer.save_freq=1"), 0);
  const auto server = serve("saved/hf", 2);
  const std::string address = server->address(), last = at("saved/checkpoints/global_step_2");
  const Called equal = verify(at("saved/hf"), address);
  EXPECT_EQ(equal.code, 0) << equal.out;
  EXPECT_THAT(equal.out, HasSubstr("equal: "));
  EXPECT_EQ(verify(last, address).code, 0);
  EXPECT_EQ(verify(address, last).code, 0);
  const Called older = verify(at("saved/checkpoints/global_step_1"), address, "--json");
  EXPECT_EQ(older.code, 1) << older.out;
  const auto said = nlohmann::json::parse(older.out);
  EXPECT_EQ(said.at("equal"), false);
  EXPECT_EQ(said.at("differences").at(0).at("fault"), "values");
  EXPECT_GE(said.at("differences").at(0).at("worker_b"), 0);
  // Outside its run a checkpoint lies as the server's model does.
  fs::create_directories(folder_ / "moved");
  fs::copy(last, folder_ / "moved/global_step_2", fs::copy_options::recursive);
  EXPECT_EQ(verify(at("moved/global_step_2"), address).code, 0);
  const auto other = serve("saved/hf", 1);
  EXPECT_EQ(verify(address, other->address()).code, 0);
  EXPECT_EQ(verify(at("model"), other->address()).code, 1);
}

TEST_F(VerifyServer, SaysWhatItLacks) {
  const std::string nobody = "http://127.0.0.1:" + std::to_string(free_port());
  const Called refused = verify(at("model"), nobody);
  EXPECT_EQ(refused.code, 69);
  EXPECT_THAT(refused.out, AllOf(HasSubstr(nobody), HasSubstr("refused the connection")));
  EXPECT_EQ(verify(at("model"), "http://127.0.0.1").code, 64);
  const auto bare = serve("model", 1, {"--worker-extension-cls", ""});
  const Called without = verify(at("model"), bare->address());
  EXPECT_EQ(without.code, 69);
  EXPECT_THAT(without.out, HasSubstr("--worker-extension-cls"));
  const auto server = serve("model", 2);
  ASSERT_EQ(run("init-model --model tiny-qwen2-digits --digits --seed 1 -o " + at("odd")), 0);
  std::string config = text_of(folder_ / "odd/config.json");
  const std::string key = "\"intermediate_size\": ";
  const std::size_t place = config.find(key);
  ASSERT_NE(place, std::string::npos);
  config.replace(place, key.size(), key + "1");
  config.replace(config.find(',', place), 1, "1,");
  std::ofstream(folder_ / "odd/config.json") << config;
  const Called odd = verify(at("odd"), server->address());
  EXPECT_EQ(odd.code, 65) << odd.out;
  EXPECT_THAT(odd.out, HasSubstr("columns of the MLP evenly, which 2 tensor-parallel workers"));
}

}  // namespace
}  // namespace tessera
