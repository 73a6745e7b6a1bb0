// `tessera-run bench train` on CPU ranks, as a user calls it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera {
namespace {

namespace fs = std::filesystem;

int run(const std::string& words) {
  const std::string program = std::string(TESSERA_BINARY_DIR) + "/executor/tessera-run";
  const int status = std::system((program + " bench train " + words + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

nlohmann::json figures(const std::string& words) {
  const fs::path file =
      fs::temp_directory_path() / ("tessera-bench-" + std::to_string(getpid()) + ".json");
  EXPECT_EQ(run("--model tiny-qwen2-digits --device cpu --sequence 16 --micro-batch-tokens 32 "
                "--steps 3 " +
                words + " -o " + file.string()),
            0)
      << words;
  nlohmann::json result;
  std::ifstream(file) >> result;
  fs::remove(file);
  return result.at("figures").at(0);
}

TEST(TrainBench, EveryLayoutTakesTheSameStepsAndReportsThem) {
  double loss = 0, norm = 0;
  for (const char* layout : {"zero=3", "zero=2", "tp=2,sp", "pp=2"}) {
    // 128 tokens a step, by two replicas or by one.
    const bool replicas = std::string(layout).starts_with("zero");
    const nlohmann::json row = figures("--ranks 2 --layout " + std::string(layout) +
                                       " --micro-batches " + (replicas ? "2" : "4"));
    const double step = row.at("step_s");
    EXPECT_GT(step, 0) << layout;
    EXPECT_NEAR(row.at("tokens_per_s_per_gpu").get<double>(), 64 / step, 1e-6 * 64 / step)
        << layout;
    const nlohmann::json& split = row.at("split");
    EXPECT_LE(split.at("forward_backward_s").get<double>() + split.at("optimizer_s").get<double>(),
              step * 1.05);
    EXPECT_GT(row.at("ceiling").at("gemm_s").get<double>(), 0);
    EXPECT_GT(row.at("prediction").at("step_s").get<double>(), 0);
    EXPECT_NEAR(row.at("loss").get<double>(), std::log(16.0), 0.5) << layout;
    EXPECT_GT(row.at("grad_norm").get<double>(), 0);
    if (loss == 0) {
      loss = row.at("loss");
      norm = row.at("grad_norm");
    }
    EXPECT_NEAR(row.at("loss").get<double>(), loss, 1e-4) << layout;
    EXPECT_NEAR(row.at("grad_norm").get<double>(), norm, 1e-3 * norm) << layout;
  }
}

TEST(TrainBench, AProfileNamesMatrixProducts) {
  const nlohmann::json row = figures("--ranks 1 --profile --recompute full --micro-batches 2");
  EXPECT_GT(row.at("profile").at("kinds").at("gemm").get<double>(), 0);
  EXPECT_FALSE(row.at("profile").at("kernels").empty());
}

TEST(TrainBench, RefusesWhatCannotBe) {
  EXPECT_EQ(run("--model tiny-qwen2-digits --device cpu --ranks 1 --layout tp=2 --sequence 16 "
                "--micro-batch-tokens 32"),
            64);
  EXPECT_EQ(run("--model tiny-qwen2-digits --device cpu --ranks 1 --sequence 15 "
                "--micro-batch-tokens 32"),
            64);
}

}  // namespace
}  // namespace tessera
