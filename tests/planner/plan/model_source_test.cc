// The digest that ties a plan to its model.
#include "planner/plan/model_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class ModelSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tessera-model-source-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& text) { std::ofstream(folder_ / "config.json") << text; }

  fs::path folder_;
};

TEST_F(ModelSourceTest, DigestIsSha256) {
  write("abc");  // FIPS 180-2, appendix B.1
  EXPECT_EQ(sha256_of(folder_ / "config.json"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of(folder_ / "absent"), std::nullopt);
}

TEST_F(ModelSourceTest, APresetCarriesTheDigestOfItsConfig) {
  Problems problems;
  const auto source = read_model_source("qwen2.5-7b", problems);
  ASSERT_TRUE(source);
  EXPECT_EQ(source->config_sha256, sha256_of(fs::path(source->path) / "config.json"));
}

TEST_F(ModelSourceTest, AChangedConfigIsRefusedByPlace) {
  write("abc");
  Plan plan;
  plan.models["actor"] = {{}, folder_.string(), *sha256_of(folder_ / "config.json")};
  Problems problems;
  check_model_sources(plan, "plan.json", problems);
  EXPECT_TRUE(problems.empty());
  write("abd");
  check_model_sources(plan, "plan.json", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, "/models/actor/config_sha256");
}

TEST_F(ModelSourceTest, AModelWithoutDigestOrElsewhereIsNotJudged) {
  write("abc");
  Plan plan;
  plan.models["actor"] = {{}, folder_.string(), ""};
  plan.models["reward"] = {{}, (folder_ / "absent").string(), std::string(64, 'a')};
  Problems problems;
  check_model_sources(plan, "plan.json", problems);
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace tessera
