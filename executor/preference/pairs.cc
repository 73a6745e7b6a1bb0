#include "executor/preference/pairs.h"

#include <cmath>
#include <span>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/enum_names.h"
#include "executor/data/parquet_rows.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kMostProblems = 100;
constexpr std::size_t kLargestFile = std::size_t{4} << 30;

constexpr auto kOverlong = enum_names<OverlongPair>({{OverlongPair::error, "error"},
                                                     {OverlongPair::filter, "filter"},
                                                     {OverlongPair::truncate, "truncate"}});

/// One line, or one row of a table, being read.
struct Line {
  const std::string& file;
  std::int64_t number;
  Problems& problems;
  bool is_row = false;

  std::string place() const { return (is_row ? "row " : "") + std::to_string(number); }

  void refuse(const Node& at, const std::string& key, std::string found, std::string expected) {
    problems.push_back({.file = file,
                        .place = place() + (is_row ? "" : ":" + std::to_string(at.column)) +
                                 (key.empty() ? "" : " (" + key + ")"),
                        .found = std::move(found),
                        .expected = std::move(expected)});
  }
};

std::string text_of(Line& line, const Node& map, const std::string& path, const char* key) {
  const Node* node = map.find(key);
  if (node != nullptr && node->is(Kind::string)) return node->text;
  line.refuse(node == nullptr ? map : *node, path + "/" + key,
              node == nullptr ? "nothing" : describe(*node), "a string");
  return {};
}

/// The messages of a list, or a text as one without a role.
std::vector<ChatMessage> messages_of(Line& line, const Node& node, const std::string& path) {
  if (node.is(Kind::string)) return {{"", node.text}};
  std::vector<ChatMessage> all;
  if (!node.is(Kind::list) || node.items.empty()) {
    line.refuse(node, path, describe(node), "a string or a list of {role, content}, not empty");
    return all;
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string at = path + "/" + std::to_string(i);
    const Node& item = node.items[i];
    if (item.is(Kind::map)) {
      all.push_back({text_of(line, item, at, "role"), text_of(line, item, at, "content")});
    } else {
      line.refuse(item, at, describe(item), "an object with role and content");
    }
  }
  return all;
}

/// An answer's messages, of which the last is the answer.
std::vector<ChatMessage> answer_of(Line& line, const Node& root, const char* key, bool prompted) {
  const std::string path = std::string("/") + key;
  const Node* node = root.find(key);
  if (node == nullptr) {
    line.refuse(root, path, "nothing", "an answer: a string or a list of {role, content}");
    return {};
  }
  std::vector<ChatMessage> all = messages_of(line, *node, path);
  if (node->is(Kind::list) && !all.empty() &&
      ((prompted && all.size() > 1) || all.back().role != "assistant")) {
    line.refuse(*node, path,
                std::to_string(all.size()) + " messages, the last of '" + all.back().role + "'",
                prompted ? "one message of the assistant" : "a last message of the assistant");
  }
  return all;
}

PreferencePair read_pair(Line& line, const Node& root) {
  PreferencePair pair{.prompt = {}, .chosen = {}, .rejected = {}, .place = line.place()};
  const std::size_t before = line.problems.size();
  const Node* prompt = root.find("prompt");
  if (prompt != nullptr && prompt->is(Kind::null)) prompt = nullptr;
  if (prompt != nullptr) pair.prompt = messages_of(line, *prompt, "/prompt");
  std::vector<ChatMessage> chosen = answer_of(line, root, "chosen", prompt != nullptr),
                           rejected = answer_of(line, root, "rejected", prompt != nullptr);
  const Node* margin = root.find("margin");
  if (margin != nullptr && !margin->is(Kind::null)) {
    if (margin->is(Kind::integer) || margin->is(Kind::number)) {
      pair.margin = margin->number;  // of integers, too
    } else {
      line.refuse(*margin, "/margin", describe(*margin), "a number");
    }
  }
  if (line.problems.size() != before) return pair;
  pair.chosen = std::move(chosen.back().content);
  pair.rejected = std::move(rejected.back().content);
  chosen.pop_back(), rejected.pop_back();
  if (chosen != rejected) {
    line.refuse(*root.find("rejected"), "/rejected", "another conversation than that of chosen",
                "the same messages before the last one");
  } else if (pair.chosen == pair.rejected) {
    line.refuse(*root.find("rejected"), "/rejected", "the text of chosen",
                "an answer that is worse than the chosen one");
  }
  if (prompt == nullptr) pair.prompt = std::move(chosen);
  return pair;
}

/// Problems of one line's JSON count columns from the line's start; gives them the line's number.
void place_in_file(Problems& problems, std::size_t from, std::int64_t number) {
  for (std::size_t i = from; i < problems.size(); ++i) {
    std::string& place = problems[i].place;
    const std::size_t colon = place.find(':');
    place = std::to_string(number) + (colon == std::string::npos ? "" : place.substr(colon));
  }
}

/// The pairs, where no problem was appended since there were `before`.
std::optional<std::vector<PreferencePair>> whole(std::vector<PreferencePair> pairs,
                                                 const std::string& file, const char* item,
                                                 std::size_t before, Problems& problems) {
  if (problems.size() == before && pairs.empty()) {
    problems.push_back(
        {.file = file, .found = "no pair", .expected = std::string("one pair per ") + item});
  }
  if (problems.size() != before) return std::nullopt;
  return pairs;
}

}  // namespace

std::optional<std::vector<PreferencePair>> parse_preferences(std::string_view text,
                                                             const std::string& file,
                                                             Problems& problems) {
  const std::size_t before = problems.size();
  std::vector<PreferencePair> pairs;
  std::int64_t number = 0;
  while (!text.empty() && problems.size() - before < kMostProblems) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::size_t first = problems.size();
    const auto document = parse_json(content, file, problems);
    place_in_file(problems, first, number);
    if (!document) continue;
    Line line{file, number, problems};
    if (document->root.is(Kind::map)) {
      pairs.push_back(read_pair(line, document->root));
    } else {
      line.refuse(document->root, "", describe(document->root), "an object per line");
    }
  }
  return whole(std::move(pairs), file, "line", before, problems);
}

std::optional<std::vector<PreferencePair>> read_preferences(const std::filesystem::path& file,
                                                            Problems& problems) {
  const std::string name = file.string();
  if (file.extension() != ".parquet") {
    const auto text = read_text_file(file, kLargestFile, problems);
    return text ? parse_preferences(*text, name, problems) : std::nullopt;
  }
  const std::size_t before = problems.size();
  std::vector<PreferencePair> pairs;
  const auto take = [&](std::int64_t row, const Node& values) {
    Line line{name, row, problems, /*is_row=*/true};
    pairs.push_back(read_pair(line, values));
    return problems.size() - before < kMostProblems;
  };
  read_parquet(file, {"prompt", "chosen", "rejected", "margin"}, take, problems);
  return whole(std::move(pairs), name, "row", before, problems);
}

std::string_view name_of(OverlongPair what) { return kOverlong[what]; }
std::optional<OverlongPair> overlong_pair_from(std::string_view name) {
  return kOverlong.find(name);
}

std::vector<TokenSequence> PreferenceSet::sequences(const std::vector<std::int64_t>& which) const {
  std::vector<TokenSequence> all;
  for (const std::int64_t i : which) {
    const PairTokens& pair = pairs[static_cast<std::size_t>(i)];
    for (const std::vector<std::int32_t>* tokens : {&pair.chosen, &pair.rejected}) {
      const std::span<const std::int32_t> each(*tokens);
      all.push_back({each.first(each.size() - 1), each.last(1)});
    }
  }
  return all;
}

}  // namespace tessera
