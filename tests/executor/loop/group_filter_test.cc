// Groups without a signal make room for further prompts.
#include "executor/loop/group_filter.h"

#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// Prompts in turn, two samples each; a prompt has a signal where `different` says so.
struct Source {
  std::vector<bool> different;  // by prompt; beyond its end: true
  std::vector<std::int64_t> asked;
  bool stops = false;

  bool differs(std::int32_t prompt) const {
    return prompt >= static_cast<std::int32_t>(different.size()) || different[prompt];
  }
  GroupSource source() {
    return {.prompts =
                [this](std::int64_t count, std::int32_t numbered) {
                  asked.push_back(count);
                  std::vector<TokenPrompt> prompts;
                  for (std::int32_t i = numbered; i < numbered + count; ++i) {
                    prompts.push_back(
                        {.prompt_index = i, .uid = std::to_string(i), .tokens = {i}, .samples = 2});
                  }
                  return prompts;
                },
            .generate =
                [this](std::span<const TokenPrompt> prompts) {
                  ScoredRollout rollout;
                  for (const TokenPrompt& prompt : prompts) {
                    for (std::int32_t sample = 0; sample < 2; ++sample) {
                      rollout.sequences.push_back({.prompt_index = prompt.prompt_index,
                                                   .sample_index = sample,
                                                   .uid = prompt.uid});
                      rollout.metric.push_back(differs(prompt.prompt_index) ? sample : 0.5);
                    }
                  }
                  return rollout;
                },
            .stop = [this] { return stops; }};
  }
};

std::vector<std::string> uids_of(const FilteredRollout& rollout) {
  std::vector<std::string> uids;
  for (std::size_t i = 0; i < rollout.sequences.size(); ++i) {
    const Sequence& s = rollout.sequences[i];
    EXPECT_EQ(s.prompt_index, static_cast<std::int32_t>(i / 2));
    EXPECT_EQ(s.sample_index, static_cast<std::int32_t>(i % 2));
    if (s.sample_index == 0) uids.push_back(s.uid);
  }
  return uids;
}

TEST(GroupFilter, TakesTwoPromptsForEachThatItDropsAndDiscardsWhatIsTooMuch) {
  Source source{.different = {true, false, true, false}};
  const FilteredRollout rollout = filtered_rollout({.enable = true}, 4, source.source());
  EXPECT_EQ(source.asked, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(uids_of(rollout), (std::vector<std::string>{"0", "2", "4", "5"}));
  ASSERT_EQ(rollout.prompts.size(), 4U);
  EXPECT_EQ(rollout.prompts[2].uid, "4");
  EXPECT_EQ(rollout.prompts[2].prompt_index, 2);
  EXPECT_EQ(rollout.metrics.at("training/filter_groups/evicted_samples"), 2);
  EXPECT_EQ(rollout.metrics.at("training/filter_groups/discarded_surplus_samples"), 2);
  EXPECT_EQ(rollout.metrics.at("training/num_gen_batches"), 2);
}

TEST(GroupFilter, NoMorePromptsThanMayRunAtATime) {
  Source source{.different = {false, false, false, false, true, true, false, false}};
  EXPECT_EQ(filtered_rollout({.enable = true}, 4, source.source()).sequences.size(), 8U);
  EXPECT_EQ(source.asked, (std::vector<std::int64_t>{4, 4, 4}));
  Source wide{.different = source.different};
  filtered_rollout({.enable = true, .max_inflight_gen_batches = 2}, 4, wide.source());
  EXPECT_EQ(wide.asked, (std::vector<std::int64_t>{4, 8}));
}

TEST(GroupFilter, GivesUpAtItsLimitAndStopsWhenAsked) {
  Source source{.different = std::vector<bool>(100, false)};
  GroupSource named = source.source();
  named.run_file = "mine.yaml";
  try {
    filtered_rollout({.enable = true, .max_num_gen_batches = 3}, 4, named);
    ADD_FAILURE() << "no group has different scores";
  } catch (const Error& error) {
    EXPECT_EQ(error.problems().at(0).file, "mine.yaml");
  }
  EXPECT_EQ(source.asked.size(), 3U);
  Source stopped{.different = std::vector<bool>(100, false), .stops = true};
  const FilteredRollout rollout = filtered_rollout({.enable = true}, 4, stopped.source());
  EXPECT_EQ(stopped.asked.size(), 1U);
  EXPECT_EQ(uids_of(rollout).size(), 4U) << "what there is will do";
}

}  // namespace
}  // namespace tessera
