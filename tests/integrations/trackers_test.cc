// Runs sent to MLflow and to wandb as users send them, and read there by these libraries.
#include <fstream>
#include <sstream>

#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

TEST(Trackers, EveryNumberArrives) {
  const std::string python = python_with("wandb");
  if (python.empty() || python_with("mlflow").empty()) {
    GTEST_SKIP() << "no Python with wandb and mlflow";
  }
  const TemporaryFolder folder;
  const std::string said = (folder.path / "said").string();
  const int status = run_python(
      python, TESSERA_SOURCE_DIR "/tests/integrations/trackers_oracle.py " TESSERA_SOURCE_DIR " '" +
                  folder.path.string() + "' >'" + said + "'");
  EXPECT_EQ(status, 0);
  std::ifstream lines(said);
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    EXPECT_TRUE(line.starts_with("ok ")) << line;
  }
  EXPECT_EQ(cases, 30);
}

}  // namespace
}  // namespace tessera
