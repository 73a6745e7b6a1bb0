#include "executor/rollout/prompt_dealing.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace tessera {
namespace {

std::vector<TokenPrompt> prompts(const std::vector<double>& tokens) {
  std::vector<TokenPrompt> all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    all.push_back({.prompt_index = static_cast<std::int32_t>(i),
                   .uid = std::to_string(i),
                   .tokens = {1},
                   .samples = 2,
                   .expected = {.mean = tokens[i], .longest = tokens[i]}});
  }
  return all;
}

std::vector<std::int32_t> indices(std::span<const TokenPrompt> share) {
  std::vector<std::int32_t> all;
  for (const TokenPrompt& prompt : share) all.push_back(prompt.prompt_index);
  return all;
}

double tokens_of(std::span<const TokenPrompt> share) {
  double sum = 0;
  for (const TokenPrompt& prompt : share) sum += prompt.expected.mean;
  return sum;
}

TEST(PromptDealing, WithoutLengthsPromptsStayInTheirOrder) {
  const auto all = prompts({0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(indices(prompts_of_replica(all, 3, 0)), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(indices(prompts_of_replica(all, 3, 1)), (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(indices(prompts_of_replica(all, 3, 2)), (std::vector<std::int32_t>{4, 5, 6}));
}

TEST(PromptDealing, AReplicaBeginsWithItsLongestAndUnknownOnesCountAsTheMean) {
  const auto all = prompts({10, 0, 40, 25, 0, 15});  // the mean is 22.5
  EXPECT_EQ(indices(prompts_of_replica(all, 1, 0)), (std::vector<std::int32_t>{2, 3, 1, 4, 5, 0}));
  // 40 | 25, 22.5 | 22.5 + 15 by load, 10 where there is room.
  EXPECT_EQ(indices(prompts_of_replica(all, 2, 0)), (std::vector<std::int32_t>{2, 4, 0}));
  EXPECT_EQ(indices(prompts_of_replica(all, 2, 1)), (std::vector<std::int32_t>{3, 1, 5}));
}

TEST(PromptDealing, LimitsOfSamplesAreTheLengthsOfAReplay) {
  auto all = prompts({100, 1, 1, 1});
  all[0].limits = {2, 2};
  all[1].limits = {3, 9};
  all[2].limits = {8, 8};
  all[3].limits = {1, 1};
  EXPECT_EQ(indices(prompts_of_replica(all, 1, 0)), (std::vector<std::int32_t>{1, 2, 0, 3}));
}

/// The least largest sum of two shares of these sizes, over all ways to deal.
double best_of_two(const std::vector<double>& tokens) {
  const std::size_t half = tokens.size() / 2;
  const double total = std::accumulate(tokens.begin(), tokens.end(), 0.0);
  double best = total;
  for (std::uint32_t set = 0; set < (1U << tokens.size()); ++set) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      sum += tokens[i];
      ++count;
    }
    if (count == half) best = std::min(best, std::max(sum, total - sum));
  }
  return best;
}

// Graham 1969: longest processing time first is within 4/3 - 1/(3m) of the best; 7/6 for two.
TEST(PromptDealing, SharesAreEvenAndNearTheBestOfAllWays) {
  std::mt19937 engine(3);
  std::lognormal_distribution<double> length(5, 0.6);
  double dealt_sum = 0, consecutive_sum = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<double> tokens(2 + engine() % 9);
    for (double& each : tokens) each = std::ceil(length(engine));
    const auto all = prompts(tokens);
    const auto first = prompts_of_replica(all, 2, 0), second = prompts_of_replica(all, 2, 1);
    EXPECT_EQ(first.size(), tokens.size() / 2);
    EXPECT_EQ(first.size() + second.size(), tokens.size());
    std::set<std::int32_t> seen;
    for (const auto& share : {first, second}) {
      for (const std::int32_t index : indices(share)) EXPECT_TRUE(seen.insert(index).second);
    }
    const double largest = std::max(tokens_of(first), tokens_of(second));
    EXPECT_LE(largest, 4.0 / 3 * best_of_two(tokens)) << round;
    dealt_sum += largest;
    double lead = 0;
    for (std::size_t i = 0; i < first.size(); ++i) lead += tokens[i];
    consecutive_sum += std::max(lead, std::accumulate(tokens.begin(), tokens.end(), 0.0) - lead);
  }
  EXPECT_LT(dealt_sum, 0.9 * consecutive_sum);
}

TEST(PromptDealing, EarlierResponsesTellLengthsByTheRowOfTheData) {
  const auto sequence = [](const std::string& uid, std::size_t tokens) {
    Sequence s;
    s.uid = uid;
    s.response.assign(tokens, 1);
    return s;
  };
  KnownLengths known;
  remember_lengths(std::vector<Sequence>{sequence("7", 3), sequence("7", 9), sequence("12", 5)},
                   known);
  EXPECT_EQ(known, (KnownLengths{{7, {6, 9}}, {12, {5, 5}}}));
  remember_lengths(std::vector<Sequence>{sequence("12.3", 1)}, known);  // again in a step
  EXPECT_EQ(known.at(12), (ExpectedTokens{1, 1}));
  auto all = prompts({0, 0});
  all[0].uid = "7";
  all[1].uid = "8";
  expect_lengths(known, all);
  EXPECT_EQ(all[0].expected, (ExpectedTokens{6, 9}));
  EXPECT_FALSE(all[1].expected.known());
}

}  // namespace
}  // namespace tessera
