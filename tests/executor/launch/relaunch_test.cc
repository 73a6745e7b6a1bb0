// On which device a command starts its ranks.
#include "executor/launch/relaunch.h"

#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

TEST(Relaunch, RanksGetGpusWhereThereAreEnoughAndNeverCpusInstead) {
  EXPECT_TRUE(get_gpus("auto", 2, 2));
  EXPECT_FALSE(get_gpus("auto", 2, 1));
  EXPECT_FALSE(get_gpus("cpu", 2, 8));
  EXPECT_TRUE(get_gpus("cuda", 2, 8));
  try {
    get_gpus("cuda", 2, 1);
    ADD_FAILURE() << "one GPU for two ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::missing);
    EXPECT_THAT(error.what(), testing::HasSubstr("2 ranks want a GPU each (--device cuda), and 1"));
  }
}

TEST(Relaunch, TheDeviceIsSaidToTheRanks) {
  const std::vector<std::string> words{"bench", "--device", "auto", "train", "--device=auto"};
  EXPECT_EQ(on_device(words, false),
            (std::vector<std::string>{"bench", "train", "--device", "cpu"}));
}

}  // namespace
}  // namespace tessera
