// How long a run's prompts may be: as long as the plan's, unless the run file says less.
#include <gtest/gtest.h>

#include <string>

#include "executor/config/run_config.h"
#include "tests/executor/config/good_run.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

TEST(PromptLimit, ARunAdmitsThePlansLongestPrompt) {
  Problems problems;
  Plan plan = sample_plan();
  plan.workload.prompt_max = 40;
  const auto config = parse_run_config(kGoodRun, "run.yaml", plan, problems);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->data.max_prompt_length, 40);
}

TEST(PromptLimit, PromptsMayBeShorterThanThePlansAndNotLonger) {
  const auto problems_with = [](const std::string& length) {
    std::string text = kGoodRun;
    const std::size_t data = text.find("data:");
    const std::size_t key = text.find("train_files", data);
    text.insert(key, "max_prompt_length: " + length + text.substr(data + 5, key - data - 5));
    Problems problems;
    parse_run_config(text, "run.yaml", sample_plan(), problems);
    return problems;
  };
  EXPECT_TRUE(problems_with("8").empty());
  EXPECT_TRUE(problems_with("3").empty());
  const Problems longer = problems_with("9");
  ASSERT_EQ(longer.size(), 1U);
  EXPECT_EQ(longer.front().found, "9");
}

}  // namespace
}  // namespace tessera
