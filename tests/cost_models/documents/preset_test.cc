#include "cost_models/documents/preset.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

class Preset : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / "preset_test";
    std::filesystem::create_directories(root_ / "clusters");
    std::filesystem::create_directories(root_ / "models/tiny");
    std::ofstream(root_ / "clusters/mine.yaml") << "name: mine\n";
    setenv("TESSERA_CONFIGS_DIR", root_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TESSERA_CONFIGS_DIR");
    std::filesystem::remove_all(root_);
  }
  std::filesystem::path root_;
  Problems problems_;
};

TEST_F(Preset, ABareNameIsFoundBelowTheNamedRoot) {
  EXPECT_EQ(find_config("mine", "clusters", ".yaml", problems_), root_ / "clusters/mine.yaml");
  EXPECT_EQ(find_config("tiny", "models", "", problems_), root_ / "models/tiny");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Preset, APathIsTakenAsItIs) {
  EXPECT_EQ(find_config(root_ / "clusters/mine.yaml", "clusters", ".yaml", problems_),
            root_ / "clusters/mine.yaml");
}

TEST_F(Preset, AnUnknownNameIsRefusedWithTheNearestOne) {
  EXPECT_FALSE(find_config("mien", "clusters", ".yaml", problems_));
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].hint, "did you mean 'mine'?");
}

TEST_F(Preset, AMissingPathIsNotLookedUpAsAPreset) {
  EXPECT_FALSE(find_config("no/such/mine", "clusters", ".yaml", problems_));
  EXPECT_EQ(problems_.size(), 1u);
}

}  // namespace
}  // namespace tessera
