// Runs whose ranks are all killed at random moments of a save and of a step, 5 times each, under
// two layouts: what is left always loads, and the run ends as one that never died.
#include <gmock/gmock.h>

#include <string>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

TEST(Kills, AtRandomMomentsOfSavesAndStepsLoseNothingThatWasSaved) {
  const std::string log =
      fs::temp_directory_path() / ("tessera-kills-" + std::to_string(getpid()) + ".log");
  const std::string line = TESSERA_SOURCE_DIR "/benchmarks/kill_matrix.py --kills 5 --tessera " +
                           kTessera + " >" + log + " 2>&1";
  EXPECT_EQ(std::system(line.c_str()), 0) << text_of(log);
  const std::string said = text_of(log);
  for (const char* each : {"tp2pp2, save: 5 kills", "tp2pp2, step: 5 kills", "fsdp4, save: 5 kills",
                           "fsdp4, step: 5 kills"}) {
    EXPECT_THAT(said, testing::HasSubstr(each));
  }
  fs::remove(log);
}

}  // namespace
}  // namespace tessera
