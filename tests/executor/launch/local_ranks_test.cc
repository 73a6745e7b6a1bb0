// Ranks started by the process that hosts their store, with bash in the place of the program.
#include "executor/launch/local_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(LocalRanks, EveryRankHasItsVariablesAndReachesTheStore) {
  const TemporaryFolder folder;
  const std::string script =
      "exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT || exit 9\n"
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $TORCHELASTIC_USE_AGENT_STORE \"$1\" "
      "> " +
      folder.path.string() + "/$RANK\n";
  ASSERT_EQ(run_local_ranks({"/bin/bash", "-c", script, "rank", "--two words"}, 3), 0);
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    EXPECT_EQ(text_of(folder.path / number), number + " " + number + " 3 3 True --two words\n");
  }
}

TEST(LocalRanks, OneThatFailsEndsTheOthersAndGivesItsCode) {
  const TemporaryFolder folder;
  const std::string wait_for_others =
      "while [ $(ls " + folder.path.string() + " | wc -l) -lt 3 ]; do sleep 0.01; done; ";
  const std::string script = "echo $$ > " + folder.path.string() + "/$RANK\n[ $RANK = 1 ] && { " +
                             wait_for_others + "exit 71; }\nexec sleep 60\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_local_ranks({"/bin/bash", "-c", script}, 3), 71);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  for (const char* rank : {"0", "2"}) {
    EXPECT_FALSE(
        std::filesystem::exists("/proc/" + std::to_string(std::stoi(text_of(folder.path / rank)))));
  }
}

TEST(LocalRanks, AProgramThatIsNotThereIsAFailure) {
  EXPECT_EQ(run_local_ranks({"/nowhere/at/all"}, 2), 127);
}

}  // namespace
}  // namespace tessera
