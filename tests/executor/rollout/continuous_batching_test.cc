#include "executor/rollout/continuous_batching.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::int32_t kEos = 0;
constexpr std::size_t kVocabulary = 12;

/// A language model that is a table: logits follow from the hash of the whole sequence. It checks
/// that batching uses its slots properly.
class HashModel : public TokenModel {
 public:
  HashModel(std::int64_t slots, SamplingOptions sampling)
      : texts_(static_cast<std::size_t>(slots)), sampling_(sampling) {}

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

  std::vector<Draw> admit(std::span<const Admission> admissions) override {
    std::vector<Draw> draws;
    for (const Admission& admission : admissions) {
      prefills.push_back(admission.prompt.size());
      EXPECT_EQ(admission.slots.size(), admission.uniforms.size());
      for (std::size_t i = 0; i < admission.slots.size(); ++i) {
        auto& text = texts_.at(static_cast<std::size_t>(admission.slots[i]));
        text.assign(admission.prompt.begin(), admission.prompt.end());
        draws.push_back(draw(logits(text), sampling_, admission.uniforms[i]));
      }
    }
    ++admits;
    return draws;
  }

  std::vector<Draw> advance(std::span<const std::int32_t> tokens,
                            std::span<const std::int64_t> slots,
                            std::span<const double> uniforms) override {
    EXPECT_FALSE(slots.empty());
    EXPECT_EQ(std::set(slots.begin(), slots.end()).size(), slots.size());
    batches.push_back(slots.size());
    std::vector<Draw> draws;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto& text = texts_.at(static_cast<std::size_t>(slots[i]));
      text.push_back(tokens[i]);
      draws.push_back(draw(logits(text), sampling_, uniforms[i]));
    }
    return draws;
  }

  std::vector<std::size_t> prefills, batches;
  int admits = 0;

 private:
  std::vector<std::vector<std::int32_t>> texts_;
  SamplingOptions sampling_;
};

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
      for (std::uint32_t t = 0; t < options.max_response_tokens && !s.finished; ++t) {
        const DrawIndex index{step, static_cast<std::uint32_t>(prompt.prompt_index),
                              static_cast<std::uint32_t>(sample), t};
        const Draw next =
            draw(HashModel::logits(text), options.sampling, uniform(options.seed, index));
        text.push_back(next.token);
        s.response.push_back(next.token);
        s.rollout_log_prob.push_back(next.log_prob);
        s.finished = next.token == kEos;
      }
      result.push_back(s);
    }
  }
  return result;
}

TEST(ContinuousBatching, AnyNumberOfSlotsGivesTheSequencesOneByOne) {
  const auto all = prompts(7, 3);
  const auto expected = one_by_one(all, 4, options(1));
  ASSERT_TRUE(std::any_of(expected.begin(), expected.end(), [](auto& s) { return s.finished; }));
  ASSERT_TRUE(std::any_of(expected.begin(), expected.end(), [](auto& s) { return !s.finished; }));
  for (const std::int64_t slots : {1, 2, 3, 5, 8, 21, 100}) {
    SCOPED_TRACE(slots);
    HashModel model(slots, {});
    EXPECT_EQ(generate(model, 4, all, options(slots)), expected);
  }
}

TEST(ContinuousBatching, ReplicasTogetherGenerateWhatOneDoes) {
  const auto all = prompts(5, 2);
  HashModel model(4, {});
  const auto expected = generate(model, 0, all, options(4));
  for (const int replicas : {2, 3, 8}) {
    std::vector<Sequence> together;
    for (int replica = 0; replica < replicas; ++replica) {
      HashModel mine(3, {});
      for (Sequence& s :
           generate(mine, 0, prompts_of_replica(all, replicas, replica), options(3))) {
        together.push_back(std::move(s));
      }
    }
    EXPECT_EQ(together, expected) << replicas;
  }
}

TEST(ContinuousBatching, SlotsAreRefilledWhileOthersRun) {
  const auto all = prompts(30, 1);
  HashModel model(4, {});
  const auto sequences = generate(model, 0, all, options(4));
  std::size_t tokens = 0;
  for (const Sequence& s : sequences) tokens += s.response.size();
  std::size_t advanced = 0, full = 0;
  for (const std::size_t batch : model.batches) {
    advanced += batch;
    full += batch == 4 ? 1 : 0;
  }
  EXPECT_EQ(advanced + all.size(), tokens);    // every token but each first is one advance
  EXPECT_GE(full + 10, model.batches.size());  // only the tail runs partly empty
}

TEST(ContinuousBatching, SamplesOfAPromptShareItsPrefill) {
  const auto all = prompts(3, 4);
  HashModel model(12, {});
  RolloutCounts counts;
  generate(model, 0, all, options(12), &counts);
  EXPECT_EQ(model.prefills, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(model.admits, 1);
  EXPECT_EQ(counts.prefill_tokens, 6);
  EXPECT_EQ(counts.decode_steps, static_cast<std::int64_t>(model.batches.size()));
}

TEST(ContinuousBatching, PrefillsObeyTheTokenLimitButAnyPromptMayRunAlone) {
  const auto all = prompts(10, 1);  // 1 2 3 4 5 1 2 3 4 5 tokens
  HashModel model(10, {});
  RolloutOptions limited = options(10);
  limited.prefill_tokens = 4;
  EXPECT_EQ(generate(model, 0, all, limited), one_by_one(all, 0, limited));
  EXPECT_EQ(model.admits, 8);  // 1+2, 3, 4, 5, 1+2, 3, 4, 5
}

TEST(ContinuousBatching, AResponseOfOneTokenNeedsNoStep) {
  const auto all = prompts(4, 2);
  HashModel model(3, {});
  RolloutOptions one = options(3);
  one.max_response_tokens = 1;
  const auto sequences = generate(model, 0, all, one);
  EXPECT_TRUE(model.batches.empty());
  EXPECT_EQ(sequences, one_by_one(all, 0, one));
}

TEST(ContinuousBatching, StepAndSeedChangeTheSequences) {
  const auto all = prompts(4, 2);
  HashModel model(8, {});
  const auto first = generate(model, 1, all, options(8));
  EXPECT_EQ(generate(model, 1, all, options(8)), first);
  EXPECT_NE(generate(model, 2, all, options(8)), first);
  RolloutOptions other = options(8);
  other.seed = 100;
  EXPECT_NE(generate(model, 1, all, other), first);
}

TEST(Replay, RecordedResponsesComeBack) {
  const auto all = prompts(4, 2);
  HashModel model(8, {});
  Experience recorded{.step = 3, .sequences = generate(model, 3, all, options(8))};
  Problems problems;
  EXPECT_EQ(replay(recorded, all, "samples.jsonl", problems), recorded.sequences);
  EXPECT_TRUE(problems.empty());
}

TEST(Replay, MissingSamplesAndOtherPromptsAreNamed) {
  auto all = prompts(3, 2);
  HashModel model(8, {});
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
