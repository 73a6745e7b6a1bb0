// A model folder that transformers wrote, and servers that speak vLLM's protocol and hold it
// (tests/executor/vllm/fake_vllm.py). For tests on one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/vllm/server.h"
#include "tests/executor/python_oracle.h"

namespace tessera {

/// A server with `tp` workers that has loaded the folder; `arguments` replace the ones before.
inline std::unique_ptr<VllmServer> serve_folder(const std::string& python,
                                                const std::string& folder, int tp,
                                                std::vector<std::string> arguments,
                                                const std::filesystem::path& log) {
  arguments.insert(arguments.begin(), {"--load-format", "auto"});
  VllmServerSetting setting;
  setting.model = folder;
  setting.dtype = "bfloat16";
  setting.logprobs_mode = "raw_logprobs";
  setting.tp = tp;
  setting.program = {python, TESSERA_SOURCE_DIR "/tests/executor/vllm/fake_vllm.py"};
  setting.arguments = std::move(arguments);
  setting.log = log;
  auto server = std::make_unique<VllmServer>(setting);
  server->await_ready(120);
  return server;
}

class ServedWeights : public testing::Test {
 protected:
  void SetUp() override {
    python_ = python_with("transformers");
    if (python_.empty()) GTEST_SKIP() << "no Python with transformers";
    ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
    ::setenv("HF_HUB_OFFLINE", "1", 1);
    if (model_.empty()) model_ = write("model", "1");
  }

  /// A folder with the model of that seed; `more` are keys of its config, as KEY=NUMBER.
  std::string write(const std::string& name, const std::string& seed,
                    const std::string& more = "") const {
    const std::string folder = (folder_.path / name).string();
    EXPECT_EQ(run_python(python_, TESSERA_SOURCE_DIR "/tests/executor/vllm/verify/write_model.py " +
                                      folder + " " + seed + " " + more),
              0);
    return folder;
  }

  std::unique_ptr<VllmServer> serve(const std::string& folder, int tp,
                                    std::vector<std::string> arguments = {}) const {
    return serve_folder(python_, folder, tp, std::move(arguments), folder_.path / "server.log");
  }

  std::string python_;
  inline static TemporaryFolder folder_;  // of all tests
  inline static std::string model_;       // slow to write
};

}  // namespace tessera
