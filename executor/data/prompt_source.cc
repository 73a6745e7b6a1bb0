// The order of prompts, and how one is written.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/enum_names.h"
#include "executor/data/counter_random.h"
#include "executor/data/prompts.h"

namespace tessera {
namespace {

constexpr auto kTruncations = enum_names<Truncation>({{Truncation::error, "error"},
                                                      {Truncation::left, "left"},
                                                      {Truncation::right, "right"},
                                                      {Truncation::middle, "middle"}});

constexpr std::size_t kTurns = 1000;  // prompts in a row in which each file has its share

/// The order of `count` prompts in an epoch: of each file, by `first`, one of its own.
std::vector<std::int64_t> order_of(std::int64_t count, std::int64_t epoch, std::uint64_t seed,
                                   bool shuffle) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = count - 1; shuffle && i > 0; --i) {  // Fisher and Yates
    const auto j = static_cast<std::int64_t>(
        random_below(static_cast<std::uint64_t>(i + 1), seed, RandomUse::prompt_order,
                     static_cast<std::uint64_t>(epoch), static_cast<std::uint32_t>(i)));
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
  }
  return order;
}

/// Whose turn it is, 1,000 times: always the file that is furthest behind its share.
std::vector<std::uint16_t> turns_of(const std::vector<double>& weights) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> taken(weights.size(), 0);
  std::vector<std::uint16_t> turns;
  for (std::size_t k = 1; k <= kTurns; ++k) {
    std::size_t next = 0;
    double furthest = -1e300;
    for (std::size_t f = 0; f < weights.size(); ++f) {
      const double behind = weights[f] / all * static_cast<double>(k) - taken[f];
      if (behind > furthest + 1e-12) {
        furthest = behind;
        next = f;
      }
    }
    ++taken[next];
    turns.push_back(static_cast<std::uint16_t>(next));
  }
  return turns;
}

}  // namespace

PromptSource::PromptSource(std::int64_t prompts, std::int64_t per_step, std::uint64_t seed,
                           bool shuffle)
    : prompts_(prompts), per_step_(per_step), seed_(seed), shuffle_(shuffle) {
  TESSERA_CHECK(per_step > 0 && per_step <= prompts);
}

PromptSource::PromptSource(std::vector<std::int64_t> counts, const std::vector<double>& weights,
                           std::int64_t per_step, std::uint64_t seed, bool shuffle)
    : prompts_(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})),
      per_step_(per_step),
      seed_(seed),
      shuffle_(shuffle),
      counts_(std::move(counts)),
      turns_(turns_of(weights)) {
  TESSERA_CHECK(per_step > 0 && !counts_.empty() && counts_.size() == weights.size());
  TESSERA_CHECK(std::ranges::all_of(counts_, [](std::int64_t count) { return count > 0; }));
}

std::vector<std::int64_t> PromptSource::at(std::int64_t first, std::int64_t count) const {
  first += begin_;
  if (!counts_.empty()) return mixed(first, count);
  const std::int64_t per_epoch = steps_per_epoch() * per_step_;
  std::vector<std::int64_t> indices;
  while (count > 0) {
    const std::vector<std::int64_t> order = order_of(prompts_, first / per_epoch, seed_, shuffle_);
    const std::int64_t from = first % per_epoch, taken = std::min(count, per_epoch - from);
    indices.insert(indices.end(), order.begin() + from, order.begin() + from + taken);
    first += taken;
    count -= taken;
  }
  return indices;
}

std::vector<std::int64_t> PromptSource::mixed(std::int64_t first, std::int64_t count) const {
  const auto turns = static_cast<std::int64_t>(kTurns);
  std::vector<std::int64_t> taken(counts_.size(), 0), begin(counts_.size(), 0);
  for (std::size_t k = 0; k < kTurns; ++k) {
    taken[turns_[k]] += first / turns + (static_cast<std::int64_t>(k) < first % turns ? 1 : 0);
  }
  for (std::size_t f = 1; f < counts_.size(); ++f) begin[f] = begin[f - 1] + counts_[f - 1];
  std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> orders(counts_.size(), {-1, {}});
  std::vector<std::int64_t> indices;
  for (std::int64_t k = first; k < first + count; ++k) {
    const std::size_t file = turns_[static_cast<std::size_t>(k % turns)];
    const std::int64_t place = taken[file]++, epoch = place / counts_[file];
    auto& [of_epoch, order] = orders[file];
    if (of_epoch != epoch) {
      order = order_of(counts_[file], epoch, seed_ + file, shuffle_);
      of_epoch = epoch;
    }
    indices.push_back(begin[file] + order[static_cast<std::size_t>(place % counts_[file])]);
  }
  return indices;
}

bool Prompt::operator==(const Prompt& other) const {
  const auto content = [](const Prompt& prompt) {
    return std::tie(prompt.data_source, prompt.messages, prompt.ability, prompt.reward_style,
                    prompt.ground_truth, prompt.extra_info, prompt.truth_is_text);
  };
  return content(*this) == content(other);
}

std::string_view name_of(Truncation truncation) { return kTruncations[truncation]; }

std::string truth_json(const Prompt& prompt) {
  return prompt.truth_is_text ? json_line(node_of(prompt.ground_truth)) : prompt.ground_truth;
}

std::string to_json_line(const Prompt& prompt) {
  Problems none;
  const auto parsed = [&](const std::string& json) {
    auto document = parse_json(json, "", none);
    TESSERA_CHECK(document.has_value());
    return std::move(document->root);
  };
  Node root = map_node();
  add(root, "data_source", node_of(prompt.data_source));
  if (prompt.messages.size() == 1 && prompt.messages[0].role.empty()) {
    add(root, "prompt", node_of(prompt.messages[0].content));
  } else {
    Node chat = list_node();
    for (const ChatMessage& message : prompt.messages) {
      if (!message.object.empty()) {
        chat.items.push_back(parsed(message.object));
        continue;
      }
      Node entry = map_node();
      add(entry, "role", node_of(message.role));
      add(entry, "content", node_of(message.content));
      chat.items.push_back(std::move(entry));
    }
    add(root, "prompt", std::move(chat));
  }
  add(root, "ability", node_of(prompt.ability));
  Node reward = map_node();
  add(reward, "style", node_of(prompt.reward_style));
  add(reward, "ground_truth",
      prompt.truth_is_text ? node_of(prompt.ground_truth) : parsed(prompt.ground_truth));
  add(root, "reward_model", std::move(reward));
  add(root, "extra_info", parsed(prompt.extra_info));
  return json_line(root);
}

}  // namespace tessera
