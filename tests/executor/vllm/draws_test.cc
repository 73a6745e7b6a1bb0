// Inside vLLM's engine: draws of rows with seeds by Triton's interpreter, and samples that are kept
// until they end.
#include <gtest/gtest.h>

#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

/// What the oracle of this folder ends with.
int ends_with(const std::string& python, const std::string& oracle) {
  ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
  return run_python(python, TESSERA_SOURCE_DIR "/tests/executor/vllm/" + oracle);
}

TEST(VllmDraws, AreFunctionsOfSeedAndPosition) {
  const std::string python = python_with("triton");
  if (python.empty()) GTEST_SKIP() << "no Python with Triton, which torch brings";
  EXPECT_EQ(ends_with(python, "draws_oracle.py"), 0);
}

TEST(VllmScheduler, SamplesComeWholeAndOthersAreVllms) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "no Python with numpy";
  EXPECT_EQ(ends_with(python, "scheduler_oracle.py"), 0);
}

}  // namespace
}  // namespace tessera
