#include "executor/templates/chat_template.h"

#include <array>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Kind = Node::Kind;

constexpr std::size_t kLongestTemplate = std::size_t{1} << 20,
                      kLongestConfig = std::size_t{64} << 20;
constexpr std::array kTokens{"bos_token", "eos_token", "unk_token", "sep_token",
                             "pad_token", "cls_token", "mask_token"};

/// The special tokens that a tokenizer's configuration names: a text, or an object with content.
JinjaValue::Map special_tokens(const Node& config) {
  JinjaValue::Map tokens;
  for (const char* name : kTokens) {
    const Node* token = config.find(name);
    if (token != nullptr && token->is(Kind::map)) token = token->find("content");
    if (token != nullptr && token->is(Kind::string))
      tokens.emplace_back(name, jinja_of(token->text));
  }
  return tokens;
}

/// The template of a tokenizer's configuration: a text, or a list of {name, template}.
std::optional<std::string> stated_template(const Node& config) {
  const Node* stated = config.find("chat_template");
  if (stated == nullptr) return std::nullopt;
  if (stated->is(Kind::string)) return stated->text;
  for (const Node& each : stated->items) {
    const Node *name = each.find("name"), *text = each.find("template");
    if (name != nullptr && name->text == "default" && text != nullptr && text->is(Kind::string)) {
      return text->text;
    }
  }
  return std::nullopt;
}

/// Jinja reads every line end as \n.
std::string with_plain_line_ends(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  return text;
}

JinjaValue value_of(const ChatMessage& message) {
  if (!message.object.empty()) {
    Problems none;
    const auto read = parse_json(message.object, "", none);
    TESSERA_CHECK(read.has_value());
    return jinja_of(read->root);
  }
  return jinja_of(
      JinjaValue::Map{{"role", jinja_of(message.role)}, {"content", jinja_of(message.content)}});
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::open(const fs::path& folder, Problems& problems) {
  std::error_code error;
  const fs::path own = folder / "chat_template.jinja",
                 config_file = folder / "tokenizer_config.json";
  std::optional<std::string> source;
  std::string file = own.string();
  const bool has_own = fs::exists(own, error), has_config = fs::exists(config_file, error);
  if (has_own) {
    source = read_text_file(own, kLongestTemplate, problems);
    if (!source) return std::nullopt;
  }
  JinjaValue::Map tokens;
  if (has_config) {
    const auto text = read_text_file(config_file, kLongestConfig, problems);
    if (!text) return std::nullopt;
    const auto config = parse_python_json(*text, config_file.string(), problems,
                                          {.bytes = kLongestConfig, .depth = 32});
    if (!config) return std::nullopt;
    tokens = special_tokens(config->root);
    if (!has_own) {
      source = stated_template(config->root);
      file = config_file.string() + " (/chat_template)";
    }
  }
  if (!source) return ChatTemplate{};
  return parse(*source, file, std::move(tokens), problems);
}

std::optional<ChatTemplate> ChatTemplate::parse(std::string_view source, const std::string& file,
                                                JinjaValue::Map special_tokens,
                                                Problems& problems) {
  try {
    ChatTemplate made;
    made.body_ = std::make_shared<const JinjaBody>(parse_jinja(with_plain_line_ends(source)));
    made.special_tokens_ = std::move(special_tokens);
    return made;
  } catch (const TemplateError& error) {
    problems.push_back({.file = file,
                        .found = error.what(),
                        .expected = "the Jinja of chat templates (docs/training/data.md)"});
    return std::nullopt;
  }
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const JinjaValue::Map& options) const {
  JinjaValue::List said;
  for (const ChatMessage& message : messages) said.push_back(value_of(message));
  JinjaValue::Map variables{{"messages", jinja_of(std::move(said))},
                            {"tools", jinja_none()},
                            {"documents", jinja_none()},
                            {"add_generation_prompt", jinja_of(true)}};
  variables.insert(variables.end(), special_tokens_.begin(), special_tokens_.end());
  variables.insert(variables.end(), options.begin(), options.end());
  return run_jinja(*body_, variables);
}

}  // namespace tessera
