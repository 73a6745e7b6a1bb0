#include "executor/rl/experience.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cost_models/documents/problem.h"
#include "executor/rl/samples.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Sequence sequence(int prompt, int sample) {
  Sequence s{.prompt_index = prompt, .sample_index = sample, .uid = "p" + std::to_string(prompt)};
  s.prompt = {1, 2, 3 + prompt};
  s.response = {7, 8, 9 + sample, 2};
  s.finished = true;
  s.score = 0.1 * (prompt + 1) + sample;
  s.routed_experts = {0, 3, 2, 127, 300, 1};
  s.rollout_log_prob = {-0.1f, -0.69314718f, -1e-7f, -23.5f};
  s.old_log_prob = {-0.2f, -0.3f, -0.4f, -0.5f};
  s.ref_log_prob = {-1.0f, -2.0f, -3.0f, -4.0f};
  s.values = {0.5f, 0.25f, 0.125f, 0.f};
  s.token_rewards = {0.f, 0.f, 0.f, 1.f};
  s.advantages = {1.f, 2.f, 3.f, 4.f};
  s.returns = {4.f, 3.f, 2.f, 1.f};
  return s;
}

TEST(Experience, PackedSequencesComeBackEqual) {
  Experience experience{.sequences = {sequence(0, 0), sequence(0, 1), sequence(3, 0)}};
  experience.sequences[1].response_mask = {1, 0, 0, 1};
  Experience back;
  unpack(pack(experience.sequences, kAllFields), back);
  EXPECT_EQ(back, experience);
}

TEST(Experience, OnlyTheChosenFieldsTravelAndOthersStay) {
  Experience there{.sequences = {sequence(1, 0)}};
  there.sequences[0].values = {9.f, 9.f, 9.f, 9.f};
  there.sequences[0].score = 77;
  Experience here{.sequences = {sequence(1, 0)}};
  const auto bytes = pack(there.sequences, SequenceField::values | SequenceField::old_log_prob);
  unpack(bytes, here);
  EXPECT_EQ(here.sequences[0].values, there.sequences[0].values);
  EXPECT_EQ(here.sequences[0].score, sequence(1, 0).score);
  EXPECT_EQ(here.sequences[0].prompt, sequence(1, 0).prompt);
}

TEST(Experience, MergingKeepsPromptAndSampleOrder) {
  Experience all{.sequences = {sequence(2, 1)}};
  const std::vector<Sequence> first = {sequence(2, 0), sequence(0, 1)};
  const std::vector<Sequence> second = {sequence(0, 0), sequence(1, 0)};
  unpack(pack(first, kAllFields), all);
  unpack(pack(second, kAllFields), all);
  const Experience expected{.sequences = {sequence(0, 0), sequence(0, 1), sequence(1, 0),
                                          sequence(2, 0), sequence(2, 1)}};
  EXPECT_EQ(all, expected);
}

TEST(Experience, EveryTruncationOfPackedBytesIsRefused) {
  const std::vector<Sequence> sequences = {sequence(0, 0), sequence(0, 1)};
  const auto bytes = pack(sequences, kAllFields);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Experience into;
    EXPECT_THROW(unpack(std::span(bytes).first(size), into), Error) << size;
  }
}

TEST(Samples, LinesComeBackWithExactLogProbs) {
  const Sequence a = sequence(0, 0);
  Sequence b = sequence(0, 1);
  b.response_mask = {1, 0, 1, 1};
  std::stringstream file;
  file << sample_line(4, b) << '\n' << sample_line(3, a, {"1 2 3", "321\xff", "321"}) << "\n\n";
  file << sample_line(4, a) << '\n';
  Problems problems;
  const auto steps = read_samples(file, "samples.jsonl", problems);
  EXPECT_THAT(problems, SizeIs(0));
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[1].step, 4);
  ASSERT_THAT(steps[1].sequences, SizeIs(2));
  EXPECT_EQ(steps[1].sequences[0].rollout_log_prob, a.rollout_log_prob);
  EXPECT_EQ(steps[1].sequences[0].prompt, a.prompt);
  EXPECT_EQ(steps[1].sequences[1].response, b.response);
  EXPECT_EQ(steps[1].sequences[1].response_mask, b.response_mask);
  EXPECT_EQ(steps[1].sequences[1].score, b.score);
  EXPECT_EQ(steps[1].sequences[1].uid, b.uid);
  EXPECT_TRUE(steps[1].sequences[1].finished);
}

TEST(Samples, ExpertsAreWrittenWhereTheyAreWanted) {
  Sequence s = sequence(0, 0);
  s.routed_experts = {0, 127, 3, 5};
  std::stringstream file;
  file << sample_line(1, s) << '\n' << sample_line(2, s, {}, true) << '\n';
  Problems problems;
  const auto steps = read_samples(file, "samples.jsonl", problems);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_THAT(steps[0].sequences[0].routed_experts, SizeIs(0));
  EXPECT_EQ(steps[1].sequences[0].routed_experts, s.routed_experts);
}

TEST(Samples, EveryBadLineIsNamedAtOnce) {
  const char* lines =
      "{\n"       // 1
      "[1, 2]\n"  // 2
      R"({"step": 1, "prompt_index": 0, "sample_index": 0, "prompt_ids": [1]})"
      "\n"  // 3
      R"({"step": -1, "prompt_index": 0, "sample_index": 0, "prompt_ids": [1], "response_ids": [2], "score": 0})"
      "\n"
      R"({"step": 1, "prompt_index": "0", "sample_index": 0, "prompt_ids": [1], "response_ids": [2.5], "score": 0})"
      "\n"
      R"({"step": 1, "prompt_index": 0, "sample_index": 0, "prompt_ids": [1], "response_ids": [2, 3], "score": 0, "rollout_log_probs": [-1]})"
      "\n"
      R"({"step": 1, "prompt_index": 5, "sample_index": 0, "prompt_ids": [1], "response_ids": [2], "score": 0})"
      "\n"
      R"({"step": 1, "prompt_index": 5, "sample_index": 0, "prompt_ids": [1], "response_ids": [2], "score": 0})"
      "\n";
  std::istringstream in(lines);
  Problems problems;
  const auto steps = read_samples(in, "s.jsonl", problems);
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_THAT(steps[0].sequences, SizeIs(1));
  std::vector<std::string> places;
  for (const Problem& problem : problems) places.push_back(problem.place);
  EXPECT_THAT(places, testing::ElementsAre("1", "2", "3:/response_ids", "3:/score", "4:/step",
                                           "5:/prompt_index", "5:/response_ids",
                                           "6:/rollout_log_probs", "8"));
  EXPECT_THAT(to_string(problems[4]), HasSubstr("s.jsonl:4:/step: found -1"));
}

TEST(Samples, AMissingFileIsAProblem) {
  Problems problems;
  EXPECT_THAT(read_samples(std::filesystem::path("/no/such/samples.jsonl"), problems), SizeIs(0));
  EXPECT_THAT(problems, SizeIs(1));
}

}  // namespace
}  // namespace tessera
