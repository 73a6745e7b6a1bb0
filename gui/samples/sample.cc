// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/samples/sample.h"

#include <algorithm>
#include <limits>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera::gui {
namespace {

// Not within a character.
std::string beginning_of(const std::string& text) {
  if (text.size() <= kMostText) return text;
  std::size_t end = kMostText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " ... (" + std::to_string(text.size()) + " bytes in all)";
}

void read_text(ObjectReader& line, std::string_view key, std::string& into) {
  const Node* node = line.find(key);
  if (node == nullptr || node->is(Node::Kind::null)) return;
  if (node->is(Node::Kind::string)) {
    into = beginning_of(node->text);
  } else {
    line.refuse(key, "text");
  }
}

bool is_token(const Node& node) {
  return node.is(Node::Kind::integer) && node.integer >= 0 &&
         node.integer <= std::numeric_limits<std::int32_t>::max();
}

void read_tokens(ObjectReader& line, std::string_view key, std::int64_t& count,
                 std::vector<std::int32_t>& ids) {
  const Node* node = line.find(key);
  if (node == nullptr || node->is(Node::Kind::null)) return;
  const auto& items = node->items;
  if (!node->is(Node::Kind::list) || !std::all_of(items.begin(), items.end(), is_token)) {
    line.refuse(key, "a list of token ids");
    return;
  }
  count = static_cast<std::int64_t>(items.size());
  ids.reserve(std::min(items.size(), kMostTokens));
  for (std::size_t i = 0; i < std::min(items.size(), kMostTokens); ++i) {
    ids.push_back(static_cast<std::int32_t>(items[i].integer));
  }
}

// Numbers that were not finite are null in the file.
void read_log_probs(ObjectReader& line, Sample& sample) {
  constexpr std::string_view kKey = "rollout_log_probs";
  const Node* node = line.find(kKey);
  if (node == nullptr || node->is(Node::Kind::null)) return;
  const auto& items = node->items;
  // A run that replays what was recorded without them writes none.
  if (node->is(Node::Kind::list) && items.empty()) return;
  const auto is_number = [](const Node& item) {
    return item.is(Node::Kind::number) || item.is(Node::Kind::integer) || item.is(Node::Kind::null);
  };
  if (!node->is(Node::Kind::list) || !std::all_of(items.begin(), items.end(), is_number) ||
      static_cast<std::int64_t>(items.size()) !=
          std::max<std::int64_t>(0, sample.response_tokens)) {
    line.refuse(kKey, "a number for each of response_ids");
    return;
  }
  double sum = 0;
  std::size_t known = 0;
  sample.log_probs.reserve(std::min(items.size(), kMostTokens));
  for (const Node& item : items) {
    const bool null = item.is(Node::Kind::null);
    if (!null) {
      sum += item.number;
      ++known;
    }
    if (sample.log_probs.size() == kMostTokens) continue;
    sample.log_probs.push_back(null ? std::numeric_limits<float>::quiet_NaN()
                                    : static_cast<float>(item.number));
  }
  if (known > 0) sample.mean_log_prob = sum / static_cast<double>(known);
}

// A line's problems say "1:column" as every text's do; here the line is that of the file.
void place_in_file(Problems& problems, std::size_t first, const std::string& place) {
  for (std::size_t i = first; i < problems.size(); ++i) {
    std::string& at = problems[i].place;
    const bool has_line = at.starts_with("1:");
    at = place + (has_line ? at.substr(1) : at.empty() ? "" : ": " + at);
  }
}

}  // namespace

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& letter : small) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return small;
}

std::optional<Sample> parse_sample(std::string_view line, const std::string& file,
                                   const std::string& place, Problems& problems) {
  const std::size_t before = problems.size();
  Sample sample;
  if (const std::optional<Document> document = parse_json(line, file, problems)) {
    ObjectReader reader(*document, problems);
    reader.required("step", sample.step, kNotNegative);
    reader.optional("score", sample.reward);
    reader.optional("prompt_index", sample.prompt_index, kNotNegative);
    reader.optional("sample_index", sample.sample_index, kNotNegative);
    reader.optional("finished", sample.finished);
    read_tokens(reader, "prompt_ids", sample.prompt_tokens, sample.prompt_ids);
    read_tokens(reader, "response_ids", sample.response_tokens, sample.response_ids);
    read_log_probs(reader, sample);
    read_text(reader, "input", sample.prompt);
    read_text(reader, "output", sample.response);
    read_text(reader, "gts", sample.truth);
  }
  place_in_file(problems, before, place);
  if (problems.size() != before) return std::nullopt;
  sample.searched = small_letters(sample.prompt + "\n" + sample.response + "\n" + sample.truth);
  return sample;
}

}  // namespace tessera::gui
