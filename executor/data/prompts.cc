#include "executor/data/prompts.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/enum_names.h"
#include "executor/data/parquet_rows.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kLargestFile = std::size_t{4} << 30;

/// Problems of the lines of a file: a few of each kind, and how many more there are.
class LineProblems {
 public:
  LineProblems(const std::string& file, Problems& problems) : file_(file), problems_(problems) {}

  void add(const Problems& of_line) {
    for (const Problem& problem : of_line) {
      Counts& kind = kinds_[{path_in(problem.place), problem.expected}];
      if (kind.told >= kMostOfKind || told_ >= kMost) {
        ++kind.untold;
        continue;
      }
      ++kind.told;
      ++told_;
      problems_.push_back(problem);
    }
  }

  /// After the last line.
  void end() {
    std::size_t others = 0;  // of kinds that nothing was told of
    for (const auto& [kind, counts] : kinds_) {
      if (counts.told == 0) others += counts.untold;
      if (counts.told == 0 || counts.untold == 0) continue;
      tell(kind.first, "the same in " + std::to_string(counts.untold) + " more places",
           kind.second);
    }
    if (others > 0) tell("", std::to_string(others) + " more places that are wrong", "none");
  }

 private:
  struct Counts {
    std::size_t told = 0, untold = 0;
  };
  static constexpr std::size_t kMostOfKind = 5, kMost = 40;

  /// "/prompt/N/role" of "12:7 (/prompt/3/role)".
  static std::string path_in(const std::string& place) {
    std::string path;
    for (std::size_t i = std::min(place.find('('), place.size()); i < place.size(); ++i) {
      const bool digit = place[i] >= '0' && place[i] <= '9';
      if (digit && path.ends_with('/')) path += 'N';
      if (!digit && place[i] != '(' && place[i] != ')') path += place[i];
    }
    return path;
  }
  void tell(const std::string& path, std::string found, const std::string& expected) {
    problems_.push_back(
        {.file = file_, .place = path, .found = std::move(found), .expected = expected});
  }

  const std::string& file_;
  Problems& problems_;
  std::map<std::pair<std::string, std::string>, Counts> kinds_;  // by path and what is expected
  std::size_t told_ = 0;
};

bool is_parquet(const std::filesystem::path& file) { return file.extension() == ".parquet"; }

/// One line or row being read.
struct Line {
  const std::string& file;
  std::int64_t number;
  Problems& problems;
  bool is_row = false;

  void refuse(const Node& at, const std::string& key, std::string found, std::string expected) {
    const std::string where = is_row ? "row " + std::to_string(number)
                                     : std::to_string(number) + ":" + std::to_string(at.column);
    problems.push_back({.file = file,
                        .place = where + (key.empty() ? "" : " (" + key + ")"),
                        .found = std::move(found),
                        .expected = std::move(expected)});
  }

  static bool absent(const Node* node) { return node == nullptr || node->is(Kind::null); }

  /// A member of the wanted kind, or null with a Problem.
  const Node* member(const Node& map, const std::string& path, const char* key, Kind kind,
                     const char* expected) {
    const Node* node = map.find(key);
    if (absent(node)) {
      refuse(map, path + "/" + key, "nothing", expected);
      node = nullptr;
    } else if (!node->is(kind)) {
      refuse(*node, path + "/" + key, describe(*node), expected);
      node = nullptr;
    }
    return node;
  }

  std::string text(const Node& map, const std::string& path, const char* key) {
    const Node* node = member(map, path, key, Kind::string, "a string");
    return node == nullptr ? std::string() : node->text;
  }

  std::string optional_text(const Node& map, const std::string& path, const char* key) {
    return absent(map.find(key)) ? std::string() : text(map, path, key);
  }
};

constexpr auto kTruncations = enum_names<Truncation>({{Truncation::error, "error"},
                                                      {Truncation::left, "left"},
                                                      {Truncation::right, "right"},
                                                      {Truncation::middle, "middle"}});

/// What templates write of a message besides its text, which nobody here hands on to them.
constexpr std::array kUnread = {"tool_calls", "tool_call_id", "function_call", "name",
                                "reasoning_content"};

void refuse_unread(Line& line, const Node& item, const std::string& path) {
  for (const char* key : kUnread) {
    const Node* node = item.find(key);
    if (Line::absent(node) || (node->is(Kind::list) && node->items.empty())) continue;
    line.refuse(*node, path + "/" + key, describe(*node),
                "nothing: a message's role and content alone reach the chat template");
  }
}

void read_messages(Line& line, const Node& root, Prompt& prompt) {
  const Node* node = root.find("prompt");
  if (node == nullptr) return line.refuse(root, "/prompt", "nothing", "a string or a chat list");
  if (node->is(Kind::string)) {
    prompt.messages.push_back({"", node->text});
    return;
  }
  if (!node->is(Kind::list) || node->items.empty()) {
    return line.refuse(*node, "/prompt", describe(*node),
                       "a string or a list of {role, content}, not empty");
  }
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const std::string path = "/prompt/" + std::to_string(i);
    const Node& item = node->items[i];
    if (!item.is(Kind::map)) {
      line.refuse(item, path, describe(item), "an object with role and content");
      continue;
    }
    refuse_unread(line, item, path);
    ChatMessage message{line.text(item, path, "role"), line.text(item, path, "content")};
    const Node* role = item.find("role");
    if (role != nullptr && role->is(Kind::string) && message.role.empty()) {
      line.refuse(*role, path + "/role", "''",
                  "system, user, assistant or what the template knows");
    }
    prompt.messages.push_back(std::move(message));
  }
}

Prompt read_prompt(Line& line, const Node& root) {
  Prompt prompt;
  prompt.line = line.number;
  prompt.data_source = line.text(root, "", "data_source");
  read_messages(line, root, prompt);
  prompt.ability = line.optional_text(root, "", "ability");
  if (const Node* reward =
          line.member(root, "", "reward_model", Kind::map, "an object with ground_truth")) {
    prompt.reward_style = line.optional_text(*reward, "/reward_model", "style");
    const Node* truth = reward->find("ground_truth");
    if (Line::absent(truth)) {
      line.refuse(*reward, "/reward_model/ground_truth", "nothing", "a text, or any value");
    } else {
      prompt.truth_is_text = truth->is(Kind::string);
      prompt.ground_truth = prompt.truth_is_text ? truth->text : json_line(*truth);
    }
  }
  if (!Line::absent(root.find("extra_info"))) {
    const Node* extra = line.member(root, "", "extra_info", Kind::map, "an object");
    if (extra != nullptr) prompt.extra_info = json_line(*extra);
  }
  return prompt;
}

/// Problems of one line's JSON count columns from the line's start; gives them the line's number.
void place_in_file(Problems& problems, std::int64_t number) {
  for (Problem& problem : problems) {
    std::string& place = problem.place;
    const std::size_t colon = place.find(':');
    place = std::to_string(number) + (colon == std::string::npos ? "" : place.substr(colon));
  }
}

}  // namespace

namespace {

/// What no row of the file has, as its first row, which has every column and field, tells.
void refuse_missing(const std::string& file, const Node& values, Problems& problems) {
  const auto refuse = [&](const std::string& path, const std::string& expected) {
    problems.push_back(
        {.file = file, .place = path, .found = "no such column", .expected = expected});
  };
  for (const char* name : {"data_source", "prompt", "reward_model"}) {
    if (values.find(name) == nullptr) {
      refuse("/" + std::string(name), "the columns data_source, prompt and reward_model");
    }
  }
  const Node* const reward = values.find("reward_model");
  if (reward != nullptr && reward->is(Kind::map) && reward->find("ground_truth") == nullptr) {
    refuse("/reward_model/ground_truth", "a text, or any value");
  }
}

std::optional<std::vector<Prompt>> read_rows(const std::filesystem::path& file,
                                             Problems& problems) {
  const std::size_t before = problems.size();
  const std::string name = file.string();
  std::vector<Prompt> prompts;
  LineProblems all(name, problems);
  const auto take = [&](std::int64_t row, const Node& values) {
    if (row == 1) refuse_missing(name, values, problems);
    if (row == 1 && problems.size() != before) return false;
    Problems of_row;
    Line line{name, row, of_row, /*is_row=*/true};
    prompts.push_back(read_prompt(line, values));
    all.add(of_row);
    return true;
  };
  read_parquet(file, {"data_source", "prompt", "ability", "reward_model", "extra_info"}, take,
               problems);
  all.end();
  if (problems.size() == before && prompts.empty()) {
    problems.push_back({.file = name, .found = "no prompt", .expected = "one prompt per row"});
  }
  if (problems.size() != before) return std::nullopt;
  return prompts;
}

}  // namespace

std::optional<std::vector<Prompt>> parse_prompts(std::string_view text, const std::string& file,
                                                 Problems& problems) {
  const std::size_t before = problems.size();
  std::vector<Prompt> prompts;
  LineProblems all(file, problems);
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    Problems of_line;
    const auto document = parse_json(content, file, of_line);
    place_in_file(of_line, number);
    Line line{file, number, of_line};
    if (document && document->root.is(Kind::map)) {
      prompts.push_back(read_prompt(line, document->root));
    } else if (document) {
      line.refuse(document->root, "", describe(document->root), "an object per line");
    }
    all.add(of_line);
  }
  all.end();
  if (problems.size() == before && prompts.empty()) {
    problems.push_back({.file = file, .found = "no prompt", .expected = "one prompt per line"});
  }
  if (problems.size() != before) return std::nullopt;
  return prompts;
}

bool Prompt::operator==(const Prompt& other) const {
  const auto content = [](const Prompt& prompt) {
    return std::tie(prompt.data_source, prompt.messages, prompt.ability, prompt.reward_style,
                    prompt.ground_truth, prompt.extra_info, prompt.truth_is_text);
  };
  return content(*this) == content(other);
}

std::string place_of(const Prompt& prompt, const std::filesystem::path& file) {
  return (is_parquet(file) ? "row " : "") + std::to_string(prompt.line);
}

std::optional<std::vector<Prompt>> read_prompts(const std::filesystem::path& file,
                                                Problems& problems) {
  if (is_parquet(file)) return read_rows(file, problems);
  const auto text = read_text_file(file, kLargestFile, problems);
  if (!text) return std::nullopt;
  return parse_prompts(*text, file.string(), problems);
}

std::string_view name_of(Truncation truncation) { return kTruncations[truncation]; }

std::string truth_json(const Prompt& prompt) {
  return prompt.truth_is_text ? json_line(node_of(prompt.ground_truth)) : prompt.ground_truth;
}

std::string to_json_line(const Prompt& prompt) {
  Node root = map_node();
  add(root, "data_source", node_of(prompt.data_source));
  if (prompt.messages.size() == 1 && prompt.messages[0].role.empty()) {
    add(root, "prompt", node_of(prompt.messages[0].content));
  } else {
    Node chat = list_node();
    for (const ChatMessage& message : prompt.messages) {
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
  Problems none;
  const auto parsed = [&](const std::string& json) {
    auto document = parse_json(json, "", none);
    TESSERA_CHECK(document.has_value());
    return std::move(document->root);
  };
  add(reward, "ground_truth",
      prompt.truth_is_text ? node_of(prompt.ground_truth) : parsed(prompt.ground_truth));
  add(root, "reward_model", std::move(reward));
  add(root, "extra_info", parsed(prompt.extra_info));
  return json_line(root);
}

}  // namespace tessera
