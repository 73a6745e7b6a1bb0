#include "executor/data/digit_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cost_models/documents/problem.h"
#include "executor/data/counter_random.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

TEST(DigitTasks, AnswersAreWhatTheNamesSay) {
  EXPECT_EQ(digit_answer(DigitTask::reverse, "4170"), "0714");
  EXPECT_EQ(digit_answer(DigitTask::copy, "4170"), "4170");
  EXPECT_EQ(digit_answer(DigitTask::sort, "4170"), "0147");
  for (const DigitTask task : {DigitTask::reverse, DigitTask::copy, DigitTask::sort}) {
    EXPECT_EQ(digit_task_from(name_of(task)), task);
  }
  EXPECT_EQ(digit_task_from("add"), std::nullopt);
}

TEST(DigitTasks, EveryPromptHoldsItsQuestionAndItsRightAnswer) {
  const auto prompts = make_digit_prompts(DigitTask::reverse, 3, 500, 7);
  std::map<char, int> digits;
  for (const Prompt& prompt : prompts) {
    const std::string& text = prompt.messages.at(0).content;
    ASSERT_EQ(text.size(), 5u);
    EXPECT_EQ(text.front(), 'r');
    EXPECT_EQ(text.back(), '=');
    for (const char digit : text.substr(1, 3)) ++digits[digit];
    std::string question = text.substr(1, 3);
    std::ranges::reverse(question);
    EXPECT_EQ(prompt.ground_truth, question);
  }
  ASSERT_EQ(digits.size(), 10u);
  // 1500 draws of ten digits: 150 each, standard deviation 11.6; five of them are allowed.
  for (const auto& [digit, count] : digits) EXPECT_NEAR(count, 150, 58) << digit;
}

TEST(DigitTasks, SeedSplitTaskAndLengthAllChangeTheDigitsAndNothingElseDoes) {
  const auto text = [](DigitTask task, int n, std::uint64_t seed, const char* split) {
    std::string all;
    for (const Prompt& prompt : make_digit_prompts(task, n, 20, seed, split)) {
      all += prompt.messages[0].content.substr(1, 2);
    }
    return all;
  };
  const std::string base = text(DigitTask::copy, 3, 1, "train");
  EXPECT_EQ(base, text(DigitTask::copy, 3, 1, "train"));
  EXPECT_NE(base, text(DigitTask::copy, 3, 2, "train"));
  EXPECT_NE(base, text(DigitTask::copy, 3, 1, "test"));
  EXPECT_NE(base, text(DigitTask::sort, 3, 1, "train"));
  EXPECT_NE(base, text(DigitTask::copy, 4, 1, "train"));
  const auto few = make_digit_prompts(DigitTask::copy, 3, 5, 1);
  const auto many = make_digit_prompts(DigitTask::copy, 3, 50, 1);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(DigitTasks, TheFileReadsBackAsThePrompts) {
  TemporaryFolder folder;
  const auto file = folder.path / "train.jsonl";
  Problems problems;
  ASSERT_TRUE(make_data(DigitTask::sort, 4, 30, 5, "train", file, problems));
  const auto read = read_prompts(file, problems);
  ASSERT_TRUE(read) << to_string(problems.at(0));
  EXPECT_EQ(*read, make_digit_prompts(DigitTask::sort, 4, 30, 5, "train"));
  EXPECT_FALSE(make_data(DigitTask::sort, 0, 30, 5, "train", file, problems));
  EXPECT_EQ(problems.size(), 1u);
}

TEST(CounterRandom, NormalNumbersHaveTheMomentsOfANormal) {
  // n = 40,000: the mean's deviation is 0.005, the variance's 0.007; five of them are allowed.
  double sum = 0, squares = 0, fourth = 0;
  const int blocks = 10000;
  for (int block = 0; block < blocks; ++block) {
    for (const double x : normal_block(3, 99, static_cast<std::uint64_t>(block))) {
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
    }
  }
  EXPECT_NEAR(sum / (4 * blocks), 0, 0.025);
  EXPECT_NEAR(squares / (4 * blocks), 1, 0.035);
  EXPECT_NEAR(fourth / (4 * blocks), 3, 0.25);
}

TEST(CounterRandom, UsesOfOneSeedShareNoNumbers) {
  std::set<std::array<std::uint32_t, 4>> seen;
  for (const RandomUse use : {RandomUse::prompt_order, RandomUse::digit_tasks}) {
    for (std::uint32_t i = 0; i < 100; ++i) seen.insert(random_block(5, use, 0, i));
  }
  EXPECT_EQ(seen.size(), 200u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LT(random_below(3, 1, RandomUse::prompt_order, 0, static_cast<std::uint32_t>(i)), 3u);
  }
}

}  // namespace
}  // namespace tessera
