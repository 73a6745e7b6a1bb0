#include "executor/data/prompts.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
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

/// "LINE:COLUMN" in a file of what has this place in a text that begins at `number`:`column` there.
std::string place_in_file(std::int64_t line, std::int64_t at, std::int64_t number,
                          std::int64_t column) {
  if (line == 1) at += column - 1;
  return std::to_string(number + line - 1) + ':' + std::to_string(at);
}

/// One line, row or element being read.
struct Line {
  const std::string& file;
  std::int64_t number;
  Problems& problems;
  bool is_row = false;
  std::int64_t column = 1;  // of the file's line at which the text begins

  void refuse(const Node& at, const std::string& key, std::string found, std::string expected) {
    const std::string where = is_row ? "row " + std::to_string(number)
                                     : place_in_file(at.line, at.column, number, column);
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

/// What a chat template is given of a message with members beside its role and content.
std::string object_of(const Node& item) {
  Node object = map_node();
  bool more = false;
  for (std::size_t i = 0; i < item.keys.size(); ++i) {
    if (item.items[i].is(Kind::null)) continue;
    more = more || (item.keys[i] != "role" && item.keys[i] != "content");
    add(object, item.keys[i], item.items[i]);
  }
  return more ? json_line(object) : std::string();
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
    ChatMessage message{line.text(item, path, "role"), line.text(item, path, "content"),
                        object_of(item)};
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

/// Gives Problems of a text's JSON, which count from its start, their places in the file.
void place_in_file(Problems& problems, std::int64_t number, std::int64_t column) {
  for (Problem& problem : problems) {
    std::int64_t line = 1, at = 1;
    int read = 0;
    if (std::sscanf(problem.place.c_str(), "%" SCNd64 ":%" SCNd64 "%n", &line, &at, &read) < 2) {
      problem.place = std::to_string(number);
      continue;
    }
    problem.place.replace(0, static_cast<std::size_t>(read),
                          place_in_file(line, at, number, column));
  }
}

/// An element of an array: its text, and where it begins, from 1; columns are bytes.
struct JsonElement {
  std::string_view text;
  std::int64_t line = 1, column = 1;
};

constexpr std::string_view kSpace = " \t\r\n";

/// A place in a text, with its line and column.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void skip_space() {
    while (!ended() && kSpace.find(text_[at_]) != std::string_view::npos) step();
  }
  void step() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }
  /// The element that begins here, up to the comma or bracket after it.
  JsonElement element() {
    JsonElement found{.text = {}, .line = line_, .column = column()};
    const std::size_t begin = at_;
    std::int64_t depth = 0;
    bool quoted = false;
    for (; !ended(); step()) {
      const char c = text_[at_];
      if (quoted && c == '\\' && at_ + 1 < text_.size()) {
        step();
        continue;
      }
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (depth == 0 && (c == ',' || c == ']' || c == '}')) break;
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    }
    found.text = text_.substr(begin, at_ - begin);
    found.text = found.text.substr(0, found.text.find_last_not_of(kSpace) + 1);
    return found;
  }
  bool ended() const { return at_ >= text_.size(); }
  char here() const { return ended() ? '\0' : text_[at_]; }
  std::int64_t column() const { return static_cast<std::int64_t>(at_ - line_start_) + 1; }
  Problem problem(const std::string& file, std::string expected) const {
    return {.file = file,
            .place = std::to_string(line_) + ':' + std::to_string(column()),
            .found = ended() ? "the end of the text" : "'" + std::string(1, here()) + "'",
            .expected = std::move(expected)};
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  std::int64_t line_ = 1;
};

/// Calls `take` for every element of a text that is one array, so that a tree of one at a time is
/// in memory. An element's own JSON is not looked at but for where it ends; Problems for what
/// stands between elements and after the array.
void take_json_array(std::string_view text, const std::string& file,
                     const std::function<void(const JsonElement&)>& take, Problems& problems) {
  Cursor at(text);
  at.skip_space();
  at.step();
  at.skip_space();
  bool more = at.here() != ']';
  if (!more) at.step();
  while (more) {
    const JsonElement element = at.element();
    if (element.text.empty()) return problems.push_back(at.problem(file, "an object"));
    take(element);
    if (at.here() != ',' && at.here() != ']') {
      return problems.push_back(at.problem(file, "',' or ']' after an object of the array"));
    }
    more = at.here() == ',';
    at.step();
    at.skip_space();
  }
  at.skip_space();
  if (!at.ended()) problems.push_back(at.problem(file, "nothing after the array"));
}

/// Adds the prompt of a text that begins at `number`:`column` of the file.
void take_text(std::string_view text, std::int64_t number, std::int64_t column,
               const std::string& file, std::vector<Prompt>& prompts, LineProblems& all) {
  Problems of_line;
  const auto document = parse_json(text, file, of_line);
  place_in_file(of_line, number, column);
  Line line{file, number, of_line, /*is_row=*/false, column};
  if (document && document->root.is(Kind::map)) {
    prompts.push_back(read_prompt(line, document->root));
  } else if (document) {
    line.refuse(document->root, "", describe(document->root),
                "an object per line, or an array of them");
  }
  all.add(of_line);
}

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
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first != std::string_view::npos && text[first] == '[') {
    Problems between;
    const auto take = [&](const JsonElement& element) {
      take_text(element.text, element.line, element.column, file, prompts, all);
    };
    take_json_array(text, file, take, between);
    all.add(between);
    text = {};
  }
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    take_text(content, number, 1, file, prompts, all);
  }
  all.end();
  if (problems.size() == before && prompts.empty()) {
    problems.push_back({.file = file,
                        .found = "no prompt",
                        .expected = "one prompt per line, or an array of prompts"});
  }
  if (problems.size() != before) return std::nullopt;
  return prompts;
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

}  // namespace tessera
