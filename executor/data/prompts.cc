#include "executor/data/prompts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/data/counter_random.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kLargestFile = std::size_t{4} << 30;
constexpr std::size_t kMostProblems = 100;

/// One line being read.
struct Line {
  const std::string& file;
  std::int64_t number;
  Problems& problems;

  void refuse(const Node& at, const std::string& key, std::string found, std::string expected) {
    problems.push_back({.file = file,
                        .place = std::to_string(number) + ":" + std::to_string(at.column) +
                                 (key.empty() ? "" : " (" + key + ")"),
                        .found = std::move(found),
                        .expected = std::move(expected)});
  }

  /// A member of the wanted kind, or null with a Problem.
  const Node* member(const Node& map, const std::string& path, const char* key, Kind kind,
                     const char* expected) {
    const Node* node = map.find(key);
    if (node == nullptr) {
      refuse(map, path + "/" + key, "nothing", expected);
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
};

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
    ChatMessage message{line.text(item, path, "role"), line.text(item, path, "content")};
    const Node* role = item.find("role");
    if (role != nullptr && role->is(Kind::string) && message.role != "system" &&
        message.role != "user" && message.role != "assistant" && message.role != "tool") {
      line.refuse(*role, path + "/role", "'" + message.role + "'",
                  "system, user, assistant or tool");
    }
    prompt.messages.push_back(std::move(message));
  }
}

Prompt read_prompt(Line& line, const Node& root) {
  Prompt prompt;
  prompt.data_source = line.text(root, "", "data_source");
  read_messages(line, root, prompt);
  prompt.ability = line.text(root, "", "ability");
  if (const Node* reward = line.member(root, "", "reward_model", Kind::map,
                                       "an object with style and ground_truth")) {
    prompt.reward_style = line.text(*reward, "/reward_model", "style");
    const Node* truth = reward->find("ground_truth");
    if (truth != nullptr && truth->is(Kind::integer)) {  // verl's own sets hold numbers too
      prompt.ground_truth = std::to_string(truth->integer);
    } else {
      prompt.ground_truth = line.text(*reward, "/reward_model", "ground_truth");
    }
  }
  if (const Node* extra =
          line.member(root, "", "extra_info", Kind::map, "an object with split and index")) {
    prompt.split = line.text(*extra, "/extra_info", "split");
    const Node* index = line.member(*extra, "/extra_info", "index", Kind::integer, "an integer");
    if (index != nullptr) prompt.index = index->integer;
  }
  return prompt;
}

/// Problems of one line's JSON count columns from the line's start; gives them the line's number.
void place_in_file(Problems& problems, std::size_t from, std::int64_t number) {
  for (std::size_t i = from; i < problems.size(); ++i) {
    std::string& place = problems[i].place;
    const std::size_t colon = place.find(':');
    place = std::to_string(number) + (colon == std::string::npos ? "" : place.substr(colon));
  }
}

}  // namespace

std::optional<std::vector<Prompt>> parse_prompts(std::string_view text, const std::string& file,
                                                 Problems& problems) {
  const std::size_t before = problems.size();
  std::vector<Prompt> prompts;
  std::int64_t number = 0;
  while (!text.empty() && problems.size() - before < kMostProblems) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    const std::size_t first = problems.size();
    const auto document = parse_json(content, file, problems);
    place_in_file(problems, first, number);
    if (!document) continue;
    Line line{file, number, problems};
    if (document->root.is(Kind::map)) {
      prompts.push_back(read_prompt(line, document->root));
    } else {
      line.refuse(document->root, "", describe(document->root), "an object per line");
    }
  }
  if (problems.size() == before && prompts.empty()) {
    problems.push_back({.file = file, .found = "no prompt", .expected = "one prompt per line"});
  }
  if (problems.size() != before) return std::nullopt;
  return prompts;
}

std::optional<std::vector<Prompt>> read_prompts(const std::filesystem::path& file,
                                                Problems& problems) {
  const auto text = read_text_file(file, kLargestFile, problems);
  if (!text) return std::nullopt;
  return parse_prompts(*text, file.string(), problems);
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
  add(reward, "ground_truth", node_of(prompt.ground_truth));
  add(root, "reward_model", std::move(reward));
  Node extra = map_node();
  add(extra, "split", node_of(prompt.split));
  add(extra, "index", node_of(prompt.index));
  add(root, "extra_info", std::move(extra));
  return json_line(root);
}

ChatFormat chat_format_of(std::string_view chat_template) {
  constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";
  ChatFormat format;
  format.chat_ml = chat_template.find(kStart) != std::string_view::npos;
  // The default system message stands in the template as one literal; Jinja writes \n for a
  // newline.
  const std::string opening = std::string(kStart) + "system\\n";
  for (std::size_t at = chat_template.find(opening); at != std::string_view::npos;
       at = chat_template.find(opening, at + 1)) {
    const std::string_view rest = chat_template.substr(at + opening.size());
    const std::string_view message = rest.substr(0, rest.find(kEnd));
    if (message.empty() || message.size() == rest.size()) continue;
    if (message.find_first_of("'\"{}+") != std::string_view::npos) continue;
    format.default_system = message;
    break;
  }
  return format;
}

ChatFormat chat_format(const std::filesystem::path& folder, Problems& problems) {
  std::error_code error;
  if (std::filesystem::exists(folder / "chat_template.jinja", error)) {
    const auto text =
        read_text_file(folder / "chat_template.jinja", std::size_t{1} << 20, problems);
    return text ? chat_format_of(*text) : ChatFormat{};
  }
  const auto file = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(file, error)) return {};
  const auto text = read_text_file(file, std::size_t{64} << 20, problems);
  if (!text) return {};
  const auto document =
      parse_json(*text, file.string(), problems, {.bytes = std::size_t{64} << 20, .depth = 32});
  if (!document) return {};
  const Node* chat_template = document->root.find("chat_template");
  if (chat_template == nullptr || !chat_template->is(Kind::string)) return {};
  // JSON has turned the template's own escapes (\\n) into the two characters that Jinja reads.
  return chat_format_of(chat_template->text);
}

std::string render(const Prompt& prompt, const ChatFormat& format) {
  std::string text;
  const bool plain = prompt.messages.size() == 1 && prompt.messages[0].role.empty();
  if (!format.chat_ml || plain) {
    for (const ChatMessage& message : prompt.messages) text += message.content;
    return text;
  }
  const auto put = [&](std::string_view role, std::string_view content) {
    text.append("<|im_start|>").append(role).append("\n").append(content).append("<|im_end|>\n");
  };
  if (!format.default_system.empty() && prompt.messages[0].role != "system") {
    put("system", format.default_system);
  }
  for (const ChatMessage& message : prompt.messages) put(message.role, message.content);
  return text + "<|im_start|>assistant\n";
}

PromptSource::PromptSource(std::int64_t prompts, std::int64_t per_step, std::uint64_t seed,
                           bool shuffle)
    : prompts_(prompts), per_step_(per_step), seed_(seed), shuffle_(shuffle) {
  TESSERA_CHECK(per_step > 0 && per_step <= prompts);
}

std::vector<std::int64_t> PromptSource::order_of(std::int64_t epoch) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(prompts_));
  std::iota(order.begin(), order.end(), 0);
  if (shuffle_) {  // Fisher and Yates
    for (std::int64_t i = prompts_ - 1; i > 0; --i) {
      const auto j = static_cast<std::int64_t>(
          random_below(static_cast<std::uint64_t>(i + 1), seed_, RandomUse::prompt_order,
                       static_cast<std::uint64_t>(epoch), static_cast<std::uint32_t>(i)));
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
    }
  }
  return order;
}

std::vector<std::int64_t> PromptSource::at(std::int64_t first, std::int64_t count) const {
  const std::int64_t per_epoch = steps_per_epoch() * per_step_;
  std::vector<std::int64_t> indices;
  while (count > 0) {
    const std::vector<std::int64_t> order = order_of(first / per_epoch);
    const std::int64_t from = first % per_epoch, taken = std::min(count, per_epoch - from);
    indices.insert(indices.end(), order.begin() + from, order.begin() + from + taken);
    first += taken;
    count -= taken;
  }
  return indices;
}

}  // namespace tessera
