// A language model that is a table, with prompts for it, and what it says to them one by one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/rollout/request_queue.h"

namespace tessera {

inline constexpr std::int32_t kEos = 0;
inline constexpr std::size_t kVocabulary = 12;
inline constexpr std::int64_t kPageTokens = 4;

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

inline constexpr std::int64_t kManyPages = 400;

inline std::vector<Sequence> generate(HashModel& model, std::int64_t step,
                                      std::span<const TokenPrompt> prompts,
                                      const RolloutOptions& options,
                                      RolloutCounts* counts = nullptr,
                                      std::int64_t pages = kManyPages) {
  RequestQueue queue(model, step, options, pages);
  std::vector<Sequence> sequences = generate_all(queue, prompts);
  EXPECT_EQ(queue.pages().free(), pages) << "pages were lost";
  EXPECT_TRUE(model.on_their_way.empty());
  if (counts != nullptr) *counts = queue.counts();
  return sequences;
}

inline std::vector<TokenPrompt> prompts(int count, int samples) {
  std::vector<TokenPrompt> result;
  for (int i = 0; i < count; ++i) {
    TokenPrompt prompt{.prompt_index = i, .uid = "u" + std::to_string(i), .samples = samples};
    for (int t = 0; t <= i % 5; ++t) prompt.tokens.push_back(1 + (3 * i + t) % 11);
    result.push_back(prompt);
  }
  return result;
}

inline RolloutOptions options(std::int64_t slots) {
  return {.seed = 99, .max_response_tokens = 9, .eos = {kEos}, .max_sequences = slots};
}

/// One sequence after the other, straight from the definition.
inline std::vector<Sequence> one_by_one(std::span<const TokenPrompt> prompts, std::uint32_t step,
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

}  // namespace tessera
