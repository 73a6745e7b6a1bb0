// Images of a workload's prompts.
#include <gmock/gmock.h>

#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/spec_document.h"
#include "cost_models/spec/workload.h"

namespace tessera {
namespace {

const std::string kText =
    "algorithm: grpo\nprompts_per_step: 64\nprompt_tokens: 128\nresponse_tokens: {max: "
    "8}\nimages: ";

// An image's tokens are among its prompt's.
TEST(Workload, ImagesAreReadWrittenAndHeldToThePrompt) {
  const auto read = [](const std::string& images, Problems& problems) {
    return parse_workload(kText + images, "w.yaml", problems);
  };
  Problems problems;
  const auto workload = read("{per_prompt: 1.5, tokens: 64}", problems);
  ASSERT_TRUE(workload) << to_string(problems.at(0));
  EXPECT_EQ(workload->images, (ImageSpec{1.5, 64}));
  const Node node = to_node(*workload);
  ASSERT_NE(node.find("images"), nullptr);
  EXPECT_EQ(node.find("images")->find("tokens")->integer, 64);
  EXPECT_EQ(to_node(*parse_workload("{algorithm: grpo, prompts_per_step: 8, prompt_tokens: 16, "
                                    "response_tokens: {max: 8}}",
                                    "w.yaml", problems))
                .find("images"),
            nullptr);
  const auto told = [&](const std::string& images) {
    Problems found;
    EXPECT_FALSE(read(images, found)) << images;
    return found.empty() ? "" : to_string(found.front());
  };
  EXPECT_THAT(told("{per_prompt: 3, tokens: 64}"),
              testing::AllOf(testing::HasSubstr("images.tokens"),
                             testing::HasSubstr("at most prompt_tokens = 128")));
  EXPECT_THAT(told("{per_prompt: 0, tokens: 64}"), testing::HasSubstr("images.per_prompt"));
  EXPECT_THAT(told("{per_prompt: 1}"), testing::HasSubstr("images"));
  EXPECT_THAT(told("{per_prompt: 1, tokens: 64, size: 2}"), testing::HasSubstr("images.size"));
  EXPECT_THAT(told("2"), testing::HasSubstr("images"));
}

}  // namespace
}  // namespace tessera
