#include "executor/rollout/request_queue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "cost_models/documents/problem.h"
#include "executor/rollout/prompt_dealing.h"
#include "executor/rollout/replay.h"

namespace tessera {
namespace {

constexpr std::int32_t kEos = 0;
constexpr std::size_t kVocabulary = 12;
constexpr std::int64_t kPageTokens = 4;

/// A language model that is a table: logits follow from the hash of the whole text, which it reads
/// back from its pages, as a real one does its keys and values.
class HashModel : public TokenModel {
 public:
  HashModel(std::int64_t slots, std::int64_t pages, SamplingOptions sampling = {})
      : last_(static_cast<std::size_t>(slots), -1),
        pages_(static_cast<std::size_t>(pages), std::vector<std::int32_t>(kPageTokens, -1)),
        sampling_(sampling) {}

  static std::vector<float> logits(const std::vector<std::int32_t>& text) {
    std::uint64_t hash = 17;
    for (const std::int32_t token : text) {
      hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9e3779b97f4a7c15ull;
      hash ^= hash >> 29;
    }
    std::vector<float> row(kVocabulary);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>((hash >> (5 * i)) & 31) / 8.0f;
    }
    return row;
  }

  std::int64_t page_tokens() const override { return kPageTokens; }

  void launch(const Pass& pass) override {
    std::vector<Draw> draws;
    std::set<std::int64_t> slots;
    std::vector<std::int16_t>& notes = notes_on_their_way_.emplace_back();
    const auto store = [&](std::span<const std::int32_t> pages, std::int64_t at, std::int32_t id) {
      write(pages, at, id);
      for (const std::int64_t x : {at, std::int64_t{id}, std::int64_t(decoded.size())}) {
        notes.push_back(static_cast<std::int16_t>(x));
      }
    };
    for (const DecodeRow& row : pass.decode) {
      EXPECT_TRUE(slots.insert(row.draw.slot).second) << "a slot twice in one pass";
      store(row.pages, row.position, last_.at(static_cast<std::size_t>(row.draw.slot)));
    }
    for (const PrefillRow& row : pass.prefill) {
      for (std::size_t t = 0; t < row.tokens.size(); ++t) {
        store(row.pages, row.begin + static_cast<std::int64_t>(t), row.tokens[t]);
      }
      prefills.push_back(row.tokens.size());
    }
    for (const DecodeRow& row : pass.decode) {
      draws.push_back(drawn(text_of(row.pages, row.position + 1), row.draw));
    }
    for (const PrefillRow& row : pass.prefill) {
      const auto length = row.begin + static_cast<std::int64_t>(row.tokens.size());
      for (const DrawnToken& token : row.draws) {
        draws.push_back(drawn(text_of(row.pages, length), token));
      }
      for (const PageCopy& copy : row.copies) {
        pages_.at(static_cast<std::size_t>(copy.to)) =
            pages_.at(static_cast<std::size_t>(copy.from));
      }
    }
    EXPECT_EQ(draws.size(), pass.draws());
    EXPECT_FALSE(pass.decode.empty() && pass.prefill.empty());
    decoded.push_back(pass.decode.size());
    on_their_way.push_back(std::move(draws));
    EXPECT_LE(on_their_way.size(), 2u);
  }

  std::vector<Draw> collect() override {
    std::vector<Draw> draws = std::move(on_their_way.front());
    on_their_way.pop_front();
    notes_ = std::move(notes_on_their_way_.front());
    notes_on_their_way_.pop_front();
    return draws;
  }
  /// "Experts" that tell a token's position, the token itself and the pass that computed it.
  std::span<const std::int16_t> routed_experts() const override { return notes_; }

  std::vector<std::size_t> prefills, decoded;  // tokens of prefill rows; decode rows, by pass
  std::deque<std::vector<Draw>> on_their_way;

 private:
  void write(std::span<const std::int32_t> pages, std::int64_t position, std::int32_t token) {
    const auto page = pages[static_cast<std::size_t>(position / kPageTokens)];
    pages_.at(static_cast<std::size_t>(page))[static_cast<std::size_t>(position % kPageTokens)] =
        token;
  }
  std::vector<std::int32_t> text_of(std::span<const std::int32_t> pages, std::int64_t tokens) {
    std::vector<std::int32_t> text;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto page = pages[static_cast<std::size_t>(t / kPageTokens)];
      text.push_back(
          pages_.at(static_cast<std::size_t>(page))[static_cast<std::size_t>(t % kPageTokens)]);
    }
    return text;
  }
  Draw drawn(const std::vector<std::int32_t>& text, const DrawnToken& token) {
    const Draw result = draw(logits(text), sampling_, token.uniform);
    last_.at(static_cast<std::size_t>(token.slot)) = result.token;
    return result;
  }

  std::deque<std::vector<std::int16_t>> notes_on_their_way_;
  std::vector<std::int16_t> notes_;
  std::vector<std::int32_t> last_;
  std::vector<std::vector<std::int32_t>> pages_;
  SamplingOptions sampling_;
};

constexpr std::int64_t kManyPages = 400;

std::vector<Sequence> generate(HashModel& model, std::int64_t step,
                               std::span<const TokenPrompt> prompts, const RolloutOptions& options,
                               RolloutCounts* counts = nullptr, std::int64_t pages = kManyPages) {
  RequestQueue queue(model, step, options, pages);
  std::vector<Sequence> sequences = generate_all(queue, prompts);
  EXPECT_EQ(queue.pages().free(), pages) << "pages were lost";
  EXPECT_TRUE(model.on_their_way.empty());
  if (counts != nullptr) *counts = queue.counts();
  return sequences;
}

std::vector<TokenPrompt> prompts(int count, int samples) {
  std::vector<TokenPrompt> result;
  for (int i = 0; i < count; ++i) {
    TokenPrompt prompt{.prompt_index = i, .uid = "u" + std::to_string(i), .samples = samples};
    for (int t = 0; t <= i % 5; ++t) prompt.tokens.push_back(1 + (3 * i + t) % 11);
    result.push_back(prompt);
  }
  return result;
}

RolloutOptions options(std::int64_t slots) {
  return {.seed = 99, .max_response_tokens = 9, .eos = {kEos}, .max_sequences = slots};
}

/// One sequence after the other, straight from the definition.
std::vector<Sequence> one_by_one(std::span<const TokenPrompt> prompts, std::uint32_t step,
                                 const RolloutOptions& options) {
  std::vector<Sequence> result;
  for (const TokenPrompt& prompt : prompts) {
    for (std::int32_t sample = 0; sample < prompt.samples; ++sample) {
      Sequence s{.prompt_index = prompt.prompt_index,
                 .sample_index = sample,
                 .uid = prompt.uid,
                 .prompt = prompt.tokens};
      std::vector<std::int32_t> text = prompt.tokens;
      const std::int64_t limit = prompt.limits.empty()
                                     ? options.max_response_tokens
                                     : prompt.limits[static_cast<std::size_t>(sample)];
      for (std::uint32_t t = 0; t < limit && !s.finished; ++t) {
        const DrawIndex index{step, static_cast<std::uint32_t>(prompt.prompt_index),
                              static_cast<std::uint32_t>(sample), t};
        const Draw next =
            draw(HashModel::logits(text), options.sampling, uniform(options.seed, index));
        text.push_back(next.token);
        s.response.push_back(next.token);
        s.rollout_log_prob.push_back(next.log_prob);
        s.finished =
            std::find(options.eos.begin(), options.eos.end(), next.token) != options.eos.end();
      }
      result.push_back(s);
    }
  }
  return result;
}

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

// Whichever replica takes a prompt, and whatever was known when it was dealt, under any schedule:
// slots, pages that run out, pieces of prompts.
TEST(RequestQueue, DealingByExpectedLengthsChangesNoToken) {
  std::mt19937 engine(8);
  int moved = 0, preempted = 0;
  for (int round = 0; round < 60; ++round) {
    auto all = prompts(3 + static_cast<int>(engine() % 9), 1 + static_cast<int>(engine() % 3));
    const auto replicas = 1 + static_cast<int>(engine() % 4);
    RolloutOptions each = options(1 + static_cast<std::int64_t>(engine() % 6));
    each.prefill_tokens = static_cast<std::int64_t>(engine() % 4);
    const auto step = static_cast<std::uint32_t>(engine() % 5);
    const auto expected = one_by_one(all, step, each);
    for (TokenPrompt& prompt : all) {
      if (engine() % 3 == 0) continue;  // not known
      const double tokens = 1 + static_cast<double>(engine() % 9);
      prompt.expected = {.mean = tokens, .longest = tokens + static_cast<double>(engine() % 3)};
    }
    const std::int64_t pages = 4 + static_cast<std::int64_t>(engine() % 8);
    std::vector<Sequence> together;
    for (int replica = 0; replica < replicas; ++replica) {
      HashModel mine(each.max_sequences, pages);
      RolloutCounts counts;
      for (Sequence& s :
           generate(mine, step, prompts_of_replica(all, replicas, replica), each, &counts, pages)) {
        together.push_back(std::move(s));
      }
      preempted += counts.preemptions > 0 ? 1 : 0;
    }
    const auto place = [](const Sequence& s) { return std::pair(s.prompt_index, s.sample_index); };
    const auto before = [&](const Sequence& a, const Sequence& b) { return place(a) < place(b); };
    moved += std::is_sorted(together.begin(), together.end(), before) ? 0 : 1;
    std::sort(together.begin(), together.end(), before);
    EXPECT_EQ(together, expected) << round;
  }
  EXPECT_GT(moved, 30);
  EXPECT_GT(preempted, 10);
}

/// The fewest decode steps in which `slots` slots generate such lengths, over all ways to deal.
std::int64_t fewest_steps(const std::vector<std::int64_t>& lengths, std::size_t slots) {
  std::int64_t best = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<std::int64_t> load(slots, 0);
  const std::function<void(std::size_t)> deal = [&](std::size_t i) {
    if (i == lengths.size()) {
      best = std::min(best, *std::max_element(load.begin(), load.end()));
      return;
    }
    for (std::int64_t& each : load) {
      each += lengths[i];
      deal(i + 1);
      each -= lengths[i];
    }
  };
  deal(0);
  return best;
}

// Graham 1969: slots that take the longest first are at most 4/3 of the fewest steps behind; a slot
// that frees up is refilled a pass or two later, which each of its sequences adds.
TEST(RequestQueue, KnownLengthsEnterLongestFirstAndLeaveAShortTail) {
  std::mt19937 engine(21);
  std::int64_t longest_first = 0, in_order = 0;
  for (int round = 0; round < 30; ++round) {
    auto all = prompts(8, 1);
    RolloutOptions three = options(3);
    three.eos = {};
    three.max_response_tokens = 40;
    std::vector<std::int64_t> lengths;
    for (TokenPrompt& prompt : all) {
      lengths.push_back(1 + static_cast<std::int64_t>(engine() % 40));
      prompt.limits = {lengths.back()};
    }
    const auto steps = [&](std::span<const TokenPrompt> order) {
      HashModel model(3, kManyPages);
      RolloutCounts counts;
      generate(model, 0, order, three, &counts);
      return counts.decode_steps;
    };
    const std::int64_t sorted = steps(prompts_of_replica(all, 1, 0));
    EXPECT_LE(static_cast<double>(sorted),
              4.0 / 3 * static_cast<double>(fewest_steps(lengths, 3)) + 2 * 8.0 / 3 + 1);
    longest_first += sorted;
    in_order += steps(all);
  }
  EXPECT_LT(static_cast<double>(longest_first), 0.93 * static_cast<double>(in_order));
}

TEST(RequestQueue, SlotsAreRefilledWhileOthersRun) {
  const auto all = prompts(30, 1);
  HashModel model(4, kManyPages);
  RolloutCounts counts;
  const auto sequences = generate(model, 0, all, options(4), &counts);
  std::int64_t tokens = 0;
  for (const Sequence& s : sequences) tokens += static_cast<std::int64_t>(s.response.size());
  // Every token but each first is one of a decode row, and some rows are found to be too many.
  EXPECT_EQ(counts.decode_tokens - counts.dropped_tokens + 30, tokens);
  EXPECT_GT(counts.dropped_tokens, 0);
  EXPECT_LE(counts.dropped_tokens, 30);
  EXPECT_LE(counts.tail_steps, 12);
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

TEST(Replay, RecordedResponsesComeBack) {
  const auto all = prompts(4, 2);
  HashModel model(8, kManyPages);
  Experience recorded{.step = 3, .sequences = generate(model, 3, all, options(8))};
  Problems problems;
  EXPECT_EQ(replay(recorded, all, "samples.jsonl", problems), recorded.sequences);
  EXPECT_TRUE(problems.empty());
}

TEST(Replay, MissingSamplesAndOtherPromptsAreNamed) {
  auto all = prompts(3, 2);
  HashModel model(8, kManyPages);
  Experience recorded{.step = 3, .sequences = generate(model, 3, all, options(8))};
  recorded.sequences.pop_back();
  all[0].tokens = {9, 9};
  Problems problems;
  EXPECT_EQ(replay(recorded, all, "samples.jsonl", problems).size(), 3u);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].place, "step 3, prompt_index 0, sample_index 0");
  EXPECT_EQ(problems[2].place, "step 3, prompt_index 2, sample_index 1");
}

}  // namespace
}  // namespace tessera
