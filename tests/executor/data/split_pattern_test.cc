// Classes of characters in split patterns, against Hugging Face's tokenizers.
#include "executor/data/split_pattern.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "executor/data/python_text.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

using Ranges = std::vector<std::vector<std::uint32_t>>;

SplitPattern pattern_of(const std::string& expression) {
  Problems problems;
  const auto pattern = SplitPattern::compile(expression, "", "", problems);
  EXPECT_TRUE(pattern) << expression;
  return *pattern;
}

/// Every character beyond ASCII of the first four planes on a line of its own.
std::string all_characters() {
  std::u32string text = U"\n";
  for (char32_t c = 0x80; c < 0x40000; ++c) {
    if (c < 0xd800 || c >= 0xe000) (text += c) += U'\n';
  }
  return utf8_of(text);
}

Ranges alone(const SplitPattern& pattern, const std::string& text) {
  Ranges found;
  for (const std::string_view piece : pattern.isolate(text)) {
    if (piece.size() > 4 || piece.find('\n') != std::string_view::npos) continue;
    const std::u32string points = code_points(piece);
    if (points.size() != 1) continue;
    const std::uint32_t c = points[0];
    if (!found.empty() && found.back()[1] + 1 == c) {
      found.back()[1] = c;
    } else {
      found.push_back({c, c});
    }
  }
  return found;
}

TEST(SplitPattern, ClassesHaveTheCharactersThatTokenizersHave) {
  const std::string python = python_with("tokenizers");
  if (python.empty()) GTEST_SKIP() << "no Python with tokenizers";
  const TemporaryFolder folder;
  const auto output = folder.path / "classes.json";
  std::string names;
  for (const char* name : {"L", "N", "M", "P", "S", "Lu", "Ll", "Nd"}) {
    names += std::string(" '\\p{") + name + "}'";
  }
  const std::string script = TESSERA_SOURCE_DIR "/tests/executor/data/split_pattern_oracle.py ";
  ASSERT_EQ(run_python(python, script + output.string() + names), 0);
  std::ifstream file(output);
  const std::string text = all_characters();
  const auto classes = nlohmann::json::parse(file);
  for (const auto& [name, wanted] : classes.items()) {
    EXPECT_TRUE(alone(pattern_of(name), text) == wanted.get<Ranges>()) << name;
  }
}

/// UnicodeData.txt of Unicode 16: a letter of version 16, one of 15 (Han), a digit of 16.
TEST(SplitPattern, PiecesAreOfTheTextItself) {
  const std::string text = utf8_of(U"a\u1c89\U00031350b\U00010d405");
  const std::vector<std::string_view> pieces = pattern_of("\\p{L}+|\\p{N}+").isolate(text);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0], utf8_of(U"a\u1c89\U00031350b"));
  EXPECT_EQ(pieces[1], utf8_of(U"\U00010d405"));
}

}  // namespace
}  // namespace tessera
