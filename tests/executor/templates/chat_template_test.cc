// Chat templates against transformers' apply_chat_template, and where a folder's template is found.
#include "executor/templates/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using json = nlohmann::ordered_json;

JinjaValue::Map map_of(const json& object) {
  Problems problems;
  const auto document = parse_json(object.dump(), "", problems);
  return *jinja_of(document->root).map;
}

/// What is rendered, or "error: " and why it cannot be.
std::string rendered(const std::string& source, const json& messages, const json& tokens,
                     const json& options = json::object()) {
  Problems problems;
  const auto chat = ChatTemplate::parse(source, "template", map_of(tokens), problems);
  if (!chat) return "error: " + to_string(problems.at(0));
  std::vector<ChatMessage> said;
  for (const json& message : messages) {
    said.push_back(
        {message["role"], message["content"], message.size() > 2 ? message.dump() : std::string()});
  }
  try {
    return chat->render(said, map_of(options));
  } catch (const TemplateError& error) {
    return std::string("error: ") + error.what();
  }
}

// Oracle: transformers 5.17 (scripts/make_template_fixtures.py).
TEST(ChatTemplate, RendersAsTransformersDoes) {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/executor/templates/cases.json");
  const json all = json::parse(file);
  std::map<std::string, int> families;
  ASSERT_GE(all["cases"].size(), 150u);
  for (const json& row : all["cases"]) {
    const std::string text =
        rendered(row["template"], row["messages"], all["tokens"], row["options"]);
    if (!row.contains("error")) {
      EXPECT_EQ(text, row["text"].get<std::string>()) << row["name"] << "\n" << row["template"];
      ++families[row["name"]];
      continue;
    }
    EXPECT_TRUE(text.starts_with("error: ")) << row["template"] << "\n" << text;
    const bool own_words =
        row["template"].get<std::string>().find("raise_exception") != std::string::npos;
    if (own_words) {
      EXPECT_NE(text.find(row["error"].get<std::string>()), std::string::npos) << text;
    }
  }
  EXPECT_EQ(families.size(), 15u);
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnowByNameAndLine) {
  const std::pair<std::string, std::string> unknown[] = {
      {"a\n{% include 'x' %}", "line 2: the statement 'include'"},
      {"{{ 1 | xmlattr }}", "the filter 'xmlattr'"},
      {"{{ lipsum(3) }}", "the function 'lipsum'"},
      {"{{ messages | map('upper') }}", "the text of a generator"},
      {"{{ range(3)[1:] }}", "a slice of a range"},
      {"{{ 'abc'.startswith('b', 1) }}", "startswith with other than one argument"},
      {"{{ '0x1f' | int(base=16) }}", "int with a base"},
      {"{{ namespace(a=1) }}", "the text of a namespace"},
      {"{{ 1 is callable }}", "the test 'callable'"},
      {"{% for x in y recursive %}{% endfor %}", "a recursive for"},
      {"{{ f(*args) }}", "arguments with '*'"},
      {"{{ 1 < 2 < 3 }}", "a chain of comparisons"},
      {"{% if true %}", "'endif'"},
      {"{{ 'a }}", "a string without an end"},
      {"{{ 1 ", "a tag without an end"},
      {"{# x", "a comment without an end"},
      {"{{ a ? b }}", "the character '?'"},
      {"{{ '\\ud800' }}", "names no character"},
      {"{{ 1 2 }}", "'2' where the tag should end"},
      {"{% endif %}", "the statement 'endif'"},
      {"{{ 'x'.swapcase() }}", "the method 'swapcase' of a string"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too deeply"},
      {"{% for i in range(1000000) %}{% endfor %}", "a range that long"},
      {"{{ {1: 'a'} }}", "a key that is no text"},
      {"{{ 1 // 0 }}", "division by zero"}};
  for (const auto& [source, says] : unknown) {
    const std::string text = rendered(source, json::array(), json::object());
    EXPECT_TRUE(text.starts_with("error: ")) << source << ": " << text;
    EXPECT_NE(text.find(says), std::string::npos) << source << ": " << text;
  }
}

// Python's integers have no bound; what this one cannot hold is no other number.
TEST(ChatTemplate, RefusesIntegersThatItCannotHold) {
  for (const char* source : {"{{ 2 ** 64 }}", "{{ (-3) ** 41 }}", "{{ 9223372036854775807 + 1 }}",
                             "{{ 4294967296 * 4294967296 }}"}) {
    EXPECT_EQ(rendered(source, json::array(), json::object()),
              "error: line 1: an integer beyond 64 bits")
        << source;
  }
}

TEST(ChatTemplate, KnowsTheDay) {
  const std::string year = rendered("{{ strftime_now('%Y') }}", json::array(), json::object());
  EXPECT_EQ(year.size(), 4u);
  EXPECT_TRUE(year.starts_with("20"));
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

TEST(ChatTemplate, ComesFromTheFolder) {
  TemporaryFolder folder;
  Problems problems;
  const std::vector<ChatMessage> messages = {{"user", "hi"}};
  auto chat = ChatTemplate::open(folder.path, problems);
  ASSERT_TRUE(chat);
  EXPECT_TRUE(chat->empty()) << "no template at all";
  const auto config = folder.path / "tokenizer_config.json";
  write(config, R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>", "pad_token": null,
                    "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}"})");
  chat = ChatTemplate::open(folder.path, problems);
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->render(messages), "<b><e>False");
  // transformers writes int(1e30) where a tokenizer has no limit.
  write(config, R"({"chat_template": "t", "model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(ChatTemplate::open(folder.path, problems)->render(messages), "t");
  write(config, R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                      {"name": "default", "template": "{{ messages[0].content }}"}]})");
  EXPECT_EQ(ChatTemplate::open(folder.path, problems)->render(messages), "hi");
  write(folder.path / "chat_template.jinja", "own {{ messages[0].role }}\n");
  EXPECT_EQ(ChatTemplate::open(folder.path, problems)->render(messages), "own user");
  EXPECT_TRUE(problems.empty());
  write(folder.path / "chat_template.jinja", "{% extends 'x' %}");
  EXPECT_FALSE(ChatTemplate::open(folder.path, problems));
  EXPECT_NE(to_string(problems.at(0)).find("chat_template.jinja"), std::string::npos);
  std::filesystem::remove(folder.path / "chat_template.jinja");
  write(config, "{");
  EXPECT_FALSE(ChatTemplate::open(folder.path, problems));
}

}  // namespace
}  // namespace tessera
