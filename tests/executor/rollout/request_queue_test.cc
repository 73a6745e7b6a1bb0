#include "executor/rollout/request_queue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "cost_models/documents/problem.h"
#include "executor/rollout/prompt_dealing.h"
#include "tests/executor/rollout/hash_model.h"

namespace tessera {
namespace {

TEST(RequestQueue, AnyNumberOfSlotsGivesTheSequencesOneByOne) {
  const auto all = prompts(7, 3);
  const auto expected = one_by_one(all, 4, options(1));
  ASSERT_TRUE(std::any_of(expected.begin(), expected.end(), [](auto& s) { return s.finished; }));
  ASSERT_TRUE(std::any_of(expected.begin(), expected.end(), [](auto& s) { return !s.finished; }));
  for (const std::int64_t slots : {1, 2, 3, 5, 8, 21, 100}) {
    SCOPED_TRACE(slots);
    HashModel model(slots, kManyPages);
    EXPECT_EQ(generate(model, 4, all, options(slots)), expected);
  }
}

TEST(RequestQueue, ReplicasTogetherGenerateWhatOneDoes) {
  const auto all = prompts(5, 2);
  HashModel model(4, kManyPages);
  const auto expected = generate(model, 0, all, options(4));
  for (const int replicas : {2, 3, 8}) {
    std::vector<Sequence> together;
    for (int replica = 0; replica < replicas; ++replica) {
      HashModel mine(3, kManyPages);
      for (Sequence& s :
           generate(mine, 0, prompts_of_replica(all, replicas, replica), options(3))) {
        together.push_back(std::move(s));
      }
    }
    EXPECT_EQ(together, expected) << replicas;
  }
}

TEST(RequestQueue, SamplesOfAPromptShareItsPrefillAndItsFullPages) {
  std::vector<TokenPrompt> all = prompts(2, 4);
  all[0].tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  HashModel model(8, kManyPages);
  RequestQueue queue(model, 0, options(8), 100);
  for (const TokenPrompt& prompt : all) queue.submit(prompt);
  queue.step();
  EXPECT_EQ(model.prefills, (std::vector<std::size_t>{10, 2}));
  // Ten tokens: two full pages for all four and one page each; two tokens: one page each.
  EXPECT_EQ(queue.pages().free(), 100 - (2 + 4) - 4);
  while (queue.step()) {
  }
  EXPECT_EQ(queue.counts().prefill_tokens, 12);
  EXPECT_EQ(queue.take_ended().size(), 8u);
}

TEST(RequestQueue, SamplesThatEnterLaterBeginWithTheSharedPages) {
  std::vector<TokenPrompt> all = prompts(1, 4);
  all[0].tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  RolloutOptions two = options(2);
  two.eos = {};
  HashModel model(2, kManyPages);
  const auto sequences = generate(model, 0, all, two);
  EXPECT_EQ(sequences, one_by_one(all, 0, two));
  // Both first samples have ended when the others enter, so nothing is shared any more.
  EXPECT_EQ(model.prefills, (std::vector<std::size_t>{10, 10}));
  // Where one of the first still runs the others compute the last two tokens alone.
  two.eos = {kEos, 1, 2, 3};
  std::int64_t short_ones = 0;
  for (std::uint32_t step = 0; step < 10; ++step) {
    HashModel other(2, kManyPages);
    EXPECT_EQ(generate(other, step, all, two), one_by_one(all, step, two));
    EXPECT_EQ(other.prefills.front(), 10u);
    short_ones += std::count(other.prefills.begin(), other.prefills.end(), 2u);
  }
  EXPECT_GT(short_ones, 5);
}

TEST(RequestQueue, PromptsAreCutIntoPiecesOfThePassesLimit) {
  const auto all = prompts(10, 1);  // 1 2 3 4 5 1 2 3 4 5 tokens
  HashModel model(10, kManyPages);
  RolloutOptions limited = options(10);
  limited.prefill_tokens = 4;
  EXPECT_EQ(generate(model, 0, all, limited), one_by_one(all, 0, limited));
  EXPECT_EQ(model.prefills,
            (std::vector<std::size_t>{1, 2, 1, 2, 2, 2, 2, 3, 1, 2, 2, 1, 3, 1, 3, 2}));
}

TEST(RequestQueue, WithTooFewPagesSequencesLeaveAndComeBackWithTheSameText) {
  const auto all = prompts(12, 3);
  RolloutOptions long_ones = options(36);
  long_ones.max_response_tokens = 30;
  const auto expected = one_by_one(all, 2, long_ones);
  std::int64_t preemptions = 0;
  for (const std::int64_t pages : {9, 12, 17, 30, 60}) {
    SCOPED_TRACE(pages);
    HashModel model(36, pages);
    RolloutCounts counts;
    EXPECT_EQ(generate(model, 2, all, long_ones, &counts, pages), expected);
    preemptions += counts.preemptions;
  }
  EXPECT_GT(preemptions, 10);
}

/// The experts of every token but the last are its own, and of a response's tokens those of the
/// pass that drew the next one, which comes once and in order. Takes them away.
void expect_own_experts(std::vector<Sequence>& sequences) {
  for (Sequence& s : sequences) {
    std::vector<std::int32_t> text = s.prompt;
    text.insert(text.end(), s.response.begin(), s.response.end());
    ASSERT_EQ(s.routed_experts.size(), 3 * (text.size() - 1));
    for (std::size_t t = 0; t + 1 < text.size(); ++t) {
      const std::int16_t* const noted = &s.routed_experts[3 * t];
      ASSERT_EQ(noted[0], static_cast<std::int16_t>(t));
      ASSERT_EQ(noted[1], static_cast<std::int16_t>(text[t]));
      if (t >= s.prompt.size()) {
        ASSERT_GT(noted[2], noted[-1]) << "token " << t;
      }
    }
    s.routed_experts.clear();
  }
}

/// Random prompts, slots, pages, limits and ends: what comes out is what comes one by one.
TEST(RequestQueue, NoScheduleChangesWhatIsSaid) {
  std::uint64_t state = 7;
  const auto random = [&](std::int64_t least, std::int64_t most) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return least +
           static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(most - least + 1));
  };
  std::int64_t preemptions = 0, pieces = 0, dropped = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<TokenPrompt> all;
    const std::int64_t count = random(1, 12);
    for (std::int64_t i = 0; i < count; ++i) {
      TokenPrompt prompt{.prompt_index = static_cast<std::int32_t>(i),
                         .uid = "u" + std::to_string(i),
                         .samples = static_cast<std::int32_t>(random(0, 5))};
      const std::int64_t tokens = random(1, 18);
      for (std::int64_t t = 0; t < tokens; ++t) {
        prompt.tokens.push_back(static_cast<std::int32_t>(random(1, 11)));
      }
      if (random(0, 1) == 1) {
        for (std::int32_t s = 0; s < prompt.samples; ++s) prompt.limits.push_back(random(1, 20));
      }
      all.push_back(std::move(prompt));
    }
    RolloutOptions mixed = options(random(1, 20));
    mixed.max_response_tokens = random(20, 40);
    mixed.prefill_tokens = random(0, 9);
    if (random(0, 1) == 1) mixed.eos = {};
    mixed.note_experts = true;
    const std::int64_t least = (18 + mixed.max_response_tokens + kPageTokens - 1) / kPageTokens;
    const std::int64_t pages = random(least, 3 * least);
    HashModel model(mixed.max_sequences, pages);
    RolloutCounts counts;
    std::vector<Sequence> said = generate(model, round, all, mixed, &counts, pages);
    ASSERT_NO_FATAL_FAILURE(expect_own_experts(said));
    ASSERT_EQ(said, one_by_one(all, static_cast<std::uint32_t>(round), mixed));
    preemptions += counts.preemptions;
    dropped += counts.dropped_tokens;
    pieces += static_cast<std::int64_t>(model.prefills.size());
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(dropped, 100);
  EXPECT_GT(pieces, 2000);
}

TEST(RequestQueue, ACancelledRequestEndsAtOnceAndTheOthersSayTheSame) {
  const auto all = prompts(6, 3);
  RolloutOptions four = options(4);
  four.eos = {};
  for (int steps = 0; steps < 24; ++steps) {
    SCOPED_TRACE(steps);
    HashModel model(4, kManyPages);
    RequestQueue queue(model, 1, four, kManyPages);
    for (const TokenPrompt& prompt : all) queue.submit(prompt);
    for (int i = 0; i < steps; ++i) queue.step();
    queue.cancel(1);
    while (queue.step()) {
    }
    EXPECT_EQ(queue.pages().free(), kManyPages);
    const auto expected = one_by_one(all, 1, four);
    std::map<std::pair<int, int>, EndedSequence> ended;
    for (EndedSequence& one : queue.take_ended()) {
      const std::pair key{one.sequence.prompt_index, one.sequence.sample_index};
      EXPECT_TRUE(ended.emplace(key, std::move(one)).second) << "ended twice";
    }
    ASSERT_EQ(ended.size(), expected.size());
    for (const Sequence& want : expected) {
      const EndedSequence& got = ended.at({want.prompt_index, want.sample_index});
      if (got.cancelled) {
        EXPECT_EQ(want.prompt_index, 1);
        EXPECT_LT(got.sequence.response.size(), want.response.size());
      } else {
        EXPECT_EQ(got.sequence, want);
      }
    }
  }
}

TEST(RequestQueue, RequestsMayComeWhileOthersRun) {
  const auto all = prompts(5, 2);
  HashModel model(4, kManyPages);
  RequestQueue queue(model, 1, options(4), kManyPages);
  std::size_t next = 0;
  std::map<std::pair<int, int>, Sequence> ended;
  for (bool more = true; more || next < all.size();) {
    if (next < all.size()) queue.submit(all[next++]);
    more = queue.step();
    for (EndedSequence& one : queue.take_ended()) {
      const std::pair key{one.sequence.prompt_index, one.sequence.sample_index};
      ended[key] = std::move(one.sequence);
    }
  }
  for (const Sequence& want : one_by_one(all, 1, options(4))) {
    EXPECT_EQ(ended.at({want.prompt_index, want.sample_index}), want);
  }
}

TEST(RequestQueue, ATextThatNoCacheHoldsIsRefused) {
  HashModel model(2, 4);
  RequestQueue queue(model, 0, options(2), 4);  // 16 tokens
  EXPECT_NO_THROW(queue.submit({.tokens = {1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_THROW(queue.submit({.tokens = {1, 2, 3, 4, 5, 6, 7, 8}}), Error);
}

TEST(RequestQueue, AResponseOfOneTokenNeedsNoStep) {
  const auto all = prompts(4, 2);
  HashModel model(3, kManyPages);
  RolloutOptions one = options(3);
  one.max_response_tokens = 1;
  const auto sequences = generate(model, 0, all, one);
  EXPECT_THAT(model.decoded, ::testing::Each(0u));
  EXPECT_EQ(sequences, one_by_one(all, 0, one));
}

TEST(RequestQueue, StepAndSeedChangeTheSequences) {
  const auto all = prompts(4, 2);
  HashModel model(8, kManyPages);
  const auto first = generate(model, 1, all, options(8));
  EXPECT_EQ(generate(model, 1, all, options(8)), first);
  EXPECT_NE(generate(model, 2, all, options(8)), first);
  RolloutOptions other = options(8);
  other.seed = 100;
  EXPECT_NE(generate(model, 1, all, other), first);
}

}  // namespace
}  // namespace tessera
