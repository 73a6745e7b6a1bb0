#include "executor/data/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/problem.h"
#include "executor/data/digit_tasks.h"
#include "executor/data/unicode.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

using nlohmann::json;

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR "/tests/executor/data/fixtures/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

Tokenizer open_fixture(const std::string& name) {
  Problems problems;
  auto tokenizer = Tokenizer::open(
      std::string(TESSERA_SOURCE_DIR "/tests/executor/data/fixtures/") + name, problems);
  EXPECT_TRUE(tokenizer) << (problems.empty() ? "" : to_string(problems[0]));
  return *tokenizer;
}

class TokenizerGolden : public testing::TestWithParam<const char*> {};

// Oracle: scripts/make_tokenizer_fixtures.py, which runs Hugging Face's tokenizers 0.23.
TEST_P(TokenizerGolden, EncodesAndDecodesAsHuggingFaceDoes) {
  const Tokenizer tokenizer = open_fixture(GetParam());
  const json cases = json::parse(fixture(std::string(GetParam()) + "/cases.json"));
  ASSERT_GE(cases.size(), 200u);
  for (const json& row : cases) {
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<std::int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << row["text"];
    auto special = tokenizer.encode(text, true);
    special.resize(std::min<std::size_t>(special.size(), 3));
    EXPECT_EQ(special, row["with_special"].get<std::vector<std::int32_t>>()) << row["text"];
    EXPECT_EQ(tokenizer.decode(ids), row["decoded"].get<std::string>()) << row["text"];
    const auto inner = ids.size() < 2 ? std::span<const std::int32_t>()
                                      : std::span(ids).subspan(1, ids.size() - 2);
    EXPECT_EQ(tokenizer.decode(inner, false), row["cut"].get<std::string>()) << row["text"];
  }
}

// Oracle: Hugging Face's tokenizers, run here (tokenizer_oracle.py); 10,000 strings of each kind.
TEST_P(TokenizerGolden, TenThousandRandomStringsHaveHuggingFacesIds) {
  const std::string python = python_with("tokenizers");
  if (python.empty()) GTEST_SKIP() << "no Python with tokenizers";
  TemporaryFolder folder;
  const auto output = folder.path / "strings.jsonl";
  const std::string data = TESSERA_SOURCE_DIR "/tests/executor/data/";
  ASSERT_EQ(run_python(python, data + "tokenizer_oracle.py " + data + "fixtures/" + GetParam() +
                                   "/tokenizer.json 3334 " + output.string()),
            0);
  const Tokenizer tokenizer = open_fixture(GetParam());
  std::ifstream lines(output);
  int strings = 0;
  for (std::string line; std::getline(lines, line); ++strings) {
    const json row = json::parse(line);
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<std::int32_t>>();
    ASSERT_EQ(tokenizer.encode(text), ids) << row["text"];
    ASSERT_EQ(tokenizer.decode(ids, false), row["decoded"].get<std::string>()) << row["text"];
  }
  EXPECT_EQ(strings, 3334);
}

TEST_P(TokenizerGolden, AStreamOfTokensGivesTheSameTextAndNeverHalfACharacter) {
  const Tokenizer tokenizer = open_fixture(GetParam());
  for (const json& row : json::parse(fixture(std::string(GetParam()) + "/cases.json"))) {
    const auto ids = row["ids"].get<std::vector<std::int32_t>>();
    StreamDecoder stream(tokenizer);
    std::string text;
    for (const std::int32_t id : ids) {
      const std::string part = stream.put(id);
      EXPECT_EQ(valid_utf8(part), part);
      text += part;
    }
    EXPECT_EQ(text + stream.finish(), row["decoded"].get<std::string>()) << row["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TokenizerGolden,
                         testing::Values("qwen2", "llama3", "gpt2", "llama2", "mistral",
                                         "metaspace"),
                         [](const auto& instance) { return std::string(instance.param); });

/// qwen2 with tokens of every flag. Oracle: Hugging Face's tokenizers 0.23 on the same file.
TEST(Tokenizer, AddedTokensStandBesideTextAsHuggingFaceSeesIt) {
  json document = json::parse(fixture("qwen2/tokenizer.json"));
  json& added = document["added_tokens"];
  const auto add = [&](const std::string& content, int id, bool single, bool left, bool right) {
    added.push_back({{"id", id},
                     {"content", content},
                     {"single_word", single},
                     {"lstrip", left},
                     {"rstrip", right},
                     {"normalized", false},
                     {"special", false}});
  };
  add("hello", 528, true, false, false);
  add("<mask>", 529, false, true, true);
  add("  ", 530, false, false, false);
  Problems problems;
  const auto tokenizer = Tokenizer::parse(document.dump(), "added", problems);
  ASSERT_TRUE(tokenizer) << to_string(problems.front());
  const auto has = [&](const std::string& text, std::int32_t id) {
    return std::ranges::count(tokenizer->encode(text), id);
  };
  // Word characters: letters, marks, decimal digits, connectors, joiners. No fractions.
  for (const char* beside : {"x", "\u0301", "7", "_", "\u203f", "\u200d", "\u216b"}) {
    EXPECT_EQ(has("hello" + std::string(beside), 528), 0) << beside;
    EXPECT_EQ(has(std::string(beside) + "hello", 528), 0) << beside;
  }
  for (const char* beside : {" ", "-", "\u00bd", "\u00b2", "\u200b", "\u3000", "\U0001f600"}) {
    EXPECT_EQ(has("hello" + std::string(beside), 528), 1) << beside;
    EXPECT_EQ(has(std::string(beside) + "hello", 528), 1) << beside;
  }
  // Tokens are found in the spaces that the one before them takes, too.
  EXPECT_EQ(tokenizer->encode("<mask>    hello"), (std::vector<std::int32_t>{529, 530, 530, 528}));
}

TEST(Tokenizer, MalformedUtf8BecomesReplacementCharacters) {
  const Tokenizer tokenizer = open_fixture("qwen2");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xff\xe4\xbd z")), "a\ufffd\ufffd z");
}

TEST(Tokenizer, IdsWithoutATokenDecodeToNothing) {
  const Tokenizer tokenizer = open_fixture("qwen2");
  const std::vector<std::int32_t> ids{-1, tokenizer.size(), 1 << 30};
  EXPECT_EQ(tokenizer.decode(ids), "");
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_TRUE(tokenizer.is_special(*tokenizer.id_of("<|endoftext|>")));
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
}

TEST(Tokenizer, AWordOfAMillionBytesTakesNoQuadraticTime) {
  const Tokenizer tokenizer = open_fixture("qwen2");
  const std::string text(1'000'000, 'e');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(Unicode, TheByteAlphabetIsThatOfGpt2) {
  EXPECT_EQ(byte_alphabet()[' '], "\u0120");
  EXPECT_EQ(byte_alphabet()['\n'], "\u010a");
  EXPECT_EQ(byte_alphabet()['A'], "A");
  EXPECT_EQ(byte_alphabet()[0xad], "\u0143");
  std::map<std::string, int> seen;
  for (const std::string& character : byte_alphabet()) ++seen[character];
  EXPECT_EQ(seen.size(), 256u);
}

TEST(Unicode, MaximalSubpartsAreReplacedOneByOne) {
  // Unicode 15, table 3-8 and 3-9.
  EXPECT_EQ(valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\x41");
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\ufffd\ufffd\ufffd\ufffd\x41");
  EXPECT_EQ(complete_prefix("ab\xe4\xbd"), 2u);
  EXPECT_EQ(complete_prefix("ab\xff"), 3u);
  EXPECT_EQ(complete_prefix("ab\xe4\xbd\xa0"), 5u);
}

struct Edit {
  const char* what;
  void (*apply)(json& document);
  const char* says;  // part of a problem's text
};

const Edit kEdits[] = {
    {"no model", [](json& d) { d.erase("model"); }, "a BPE model"},
    {"model is a list", [](json& d) { d["model"] = json::array(); }, "an object"},
    {"model without type", [](json& d) { d["model"].erase("type"); }, "/model/type"},
    {"another model", [](json& d) { d["model"]["type"] = "Unigram"; }, "expected BPE"},
    {"no vocab", [](json& d) { d["model"].erase("vocab"); }, "/model/vocab"},
    {"empty vocab", [](json& d) { d["model"]["vocab"] = json::object(); }, "not empty"},
    {"vocab is a list",
     [](json& d) {
       d["model"]["vocab"] = {1, 2};
     },
     "/model/vocab"},
    {"id is text", [](json& d) { d["model"]["vocab"]["a"] = "7"; }, "an id of 0"},
    {"id is negative", [](json& d) { d["model"]["vocab"]["a"] = -1; }, "an id of 0"},
    {"id is huge", [](json& d) { d["model"]["vocab"]["a"] = 1ll << 40; }, "an id of 0"},
    {"two tokens of one id", [](json& d) { d["model"]["vocab"]["a"] = 5; }, "does not have"},
    {"empty token", [](json& d) { d["model"]["vocab"][""] = 9999; }, "an empty token"},
    {"no merges", [](json& d) { d["model"].erase("merges"); }, "/model/merges"},
    {"merges is an object", [](json& d) { d["model"]["merges"] = json::object(); }, "a list"},
    {"merge of one part", [](json& d) { d["model"]["merges"][0] = "ab"; }, "\"left right\""},
    {"merge of three parts", [](json& d) { d["model"]["merges"][0] = "a b c"; }, "\"left right\""},
    {"merge of three items",
     [](json& d) {
       d["model"]["merges"][0] = {"a", "b", "c"};
     },
     "\"left right\""},
    {"merge of numbers",
     [](json& d) {
       d["model"]["merges"][0] = {1, 2};
     },
     "\"left right\""},
    {"merge of unknown tokens",
     [](json& d) {
       d["model"]["merges"][0] = {"qqqq", "a"};
     },
     "which the vocabulary lacks"},
    {"merge makes no token",
     [](json& d) {
       d["model"]["merges"][0] = {"q", "\u00d7"};
     },
     "which the vocabulary lacks"},
    {"dropout", [](json& d) { d["model"]["dropout"] = 0.1; }, "/model/dropout"},
    {"suffix", [](json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
    {"byte_fallback", [](json& d) { d["model"]["byte_fallback"] = true; }, "byte_fallback"},
    {"ignore_merges is text", [](json& d) { d["model"]["ignore_merges"] = "no"; }, "true or false"},
    {"unknown unk_token", [](json& d) { d["model"]["unk_token"] = "<unk>"; }, "unk_token"},
    {"added tokens are text", [](json& d) { d["added_tokens"] = "x"; }, "/added_tokens"},
    {"added token is a number", [](json& d) { d["added_tokens"][0] = 3; }, "/added_tokens/0"},
    {"added token without id", [](json& d) { d["added_tokens"][0].erase("id"); }, "an id"},
    {"added token without content", [](json& d) { d["added_tokens"][0].erase("content"); },
     "a string"},
    {"added token takes an id", [](json& d) { d["added_tokens"][0]["id"] = 5; }, "does not have"},
    {"added flag is a number", [](json& d) { d["added_tokens"][0]["special"] = 1; },
     "true or false"},
    {"another normalizer",
     [](json& d) {
       d["normalizer"] = {{"type", "Lowercase"}};
     },
     "NFC"},
    {"normalizer is text", [](json& d) { d["normalizer"] = "NFC"; }, "an object"},
    {"no pre-tokenizer", [](json& d) { d["pre_tokenizer"] = nullptr; }, "byte-level"},
    {"another pre-tokenizer",
     [](json& d) {
       d["pre_tokenizer"] = {{"type", "Metaspace"}};
     },
     "Metaspace"},
    {"bad expression",
     [](json& d) { d["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a"; },
     "a regular expression"},
    {"plain string pattern",
     [](json& d) {
       d["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", " "}};
     },
     "Regex"},
    {"another behavior",
     [](json& d) { d["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }, "Isolated"},
    {"inverted", [](json& d) { d["pre_tokenizer"]["pretokenizers"][0]["invert"] = true; },
     "invert"},
    {"another post-processor",
     [](json& d) {
       d["post_processor"] = {{"type", "BertProcessing"}};
     },
     "BertProcessing"},
    {"template of an unknown token",
     [](json& d) {
       d["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", {{{"SpecialToken", {{"id", "<nope>"}, {"type_id", 0}}}}}}};
     },
     "<nope>"},
    {"no decoder", [](json& d) { d.erase("decoder"); }, "/decoder"},
    {"another decoder",
     [](json& d) {
       d["decoder"] = {{"type", "WordPiece"}};
     },
     "WordPiece"},
};

TEST(Tokenizer, EveryMalformedFileIsRefusedWithPlaceAndReason) {
  const json good = json::parse(fixture("qwen2/tokenizer.json"));
  ASSERT_GE(std::size(kEdits), 20u);
  for (const Edit& edit : kEdits) {
    json document = good;
    edit.apply(document);
    Problems problems;
    EXPECT_FALSE(Tokenizer::parse(document.dump(), "tokenizer.json", problems)) << edit.what;
    std::string all;
    for (const Problem& problem : problems) {
      EXPECT_EQ(problem.file, "tokenizer.json");
      EXPECT_NE(problem.place, "") << edit.what;
      all += to_string(problem) + "\n";
    }
    EXPECT_NE(all.find(edit.says), std::string::npos) << edit.what << ": " << all;
  }
  for (const std::string text : {"", "[]", "{", "nul", "{\"model\":1,\"model\":2}", "\xff"}) {
    Problems problems;
    EXPECT_FALSE(Tokenizer::parse(text, "tokenizer.json", problems)) << text;
    EXPECT_FALSE(problems.empty()) << text;
  }
}

const Edit kSentenceEdits[] = {
    {"no byte_fallback", [](json& d) { d["model"]["byte_fallback"] = false; }, "byte-level"},
    {"an unknown decoder", [](json& d) { d["decoder"]["decoders"][0]["type"] = "CTC"; }, "'CTC'"},
    {"decoders in another order",
     [](json& d) { std::swap(d["decoder"]["decoders"][1], d["decoder"]["decoders"][2]); },
     "'Fuse'"},
    {"no ByteFallback", [](json& d) { d["decoder"]["decoders"].erase(1); }, "ByteFallback"},
    {"stripped at the end", [](json& d) { d["decoder"]["decoders"][3]["stop"] = 1; }, "/stop"},
    {"stripped by a text", [](json& d) { d["decoder"]["decoders"][3]["start"] = "1"; }, "/start"},
    {"a byte-level decoder",
     [](json& d) {
       d["decoder"] = {{"type", "ByteLevel"}};
     },
     "Metaspace or byte_fallback"},
    {"replaces an expression",
     [](json& d) {
       d["normalizer"]["normalizers"][1]["pattern"] = {{"Regex", " "}};
     },
     "String"},
    {"prepends nothing", [](json& d) { d["normalizer"]["normalizers"][0].erase("prepend"); },
     "/prepend"},
    {"an unknown scheme",
     [](json& d) {
       d["pre_tokenizer"] = {
           {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}};
     },
     "always, first or never"},
    {"ByteLevel beside bytes",
     [](json& d) {
       d["pre_tokenizer"] = {{"type", "ByteLevel"}};
     },
     "byte_fallback"},
};

TEST(Tokenizer, EveryMalformedSentenceFileIsRefusedWithPlaceAndReason) {
  const json good = json::parse(fixture("llama2/tokenizer.json"));
  for (const Edit& edit : kSentenceEdits) {
    json document = good;
    edit.apply(document);
    Problems problems;
    EXPECT_FALSE(Tokenizer::parse(document.dump(), "tokenizer.json", problems)) << edit.what;
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    EXPECT_NE(all.find(edit.says), std::string::npos) << edit.what << ": " << all;
  }
}

/// Llama 2's first files call their special tokens normalized.
TEST(Tokenizer, SpecialTokensThatAreNormalizedKeepTheirNames) {
  json document = json::parse(fixture("llama2/tokenizer.json"));
  for (json& token : document["added_tokens"]) token["normalized"] = true;
  Problems problems;
  const auto tokenizer = Tokenizer::parse(document.dump(), "tokenizer.json", problems);
  ASSERT_TRUE(tokenizer) << to_string(problems.at(0));
  EXPECT_EQ(tokenizer->id_of("</s>"), 2);
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->encode("a", true).front(), 1);
}

TEST(Tokenizer, EveryTruncationOfAFileIsRefused) {
  const std::string whole = digit_tokenizer_json();
  for (std::size_t length = 0; length + 2 < whole.size(); length += 7) {
    Problems problems;
    EXPECT_FALSE(Tokenizer::parse(whole.substr(0, length), "t", problems)) << length;
    EXPECT_FALSE(problems.empty());
  }
}

TEST(DigitTokenizer, HasOneTokenPerCharacterAndTransformersAgrees) {
  Problems problems;
  const auto tokenizer = Tokenizer::parse(digit_tokenizer_json(), "digits", problems);
  ASSERT_TRUE(tokenizer) << to_string(problems.at(0));
  EXPECT_EQ(tokenizer->size(), kDigitVocabulary);
  EXPECT_EQ(tokenizer->encode("r417="), (std::vector<std::int32_t>{14, 4, 1, 7, 12}));
  EXPECT_EQ(tokenizer->encode("s09<|endoftext|>c<|pad|>"),
            (std::vector<std::int32_t>{15, 0, 9, kDigitEndToken, 13, kDigitPadToken}));
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{7, 1, 4, kDigitEndToken}), "714");

  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers: set TESSERA_VENV";
  TemporaryFolder folder;
  ASSERT_TRUE(write_digit_tokenizer(folder.path, problems));
  const std::string check =
      "-c 'import sys; from transformers import AutoTokenizer as A\n"
      "t = A.from_pretrained(sys.argv[1])\n"
      "assert t(\"r417=\").input_ids == [14, 4, 1, 7, 12], t(\"r417=\")\n"
      "assert t.eos_token_id == 11 and t.pad_token_id == 10 and len(t) == 16\n"
      "assert t.decode([7, 1, 4, 11], skip_special_tokens=True) == \"714\"' ";
  EXPECT_EQ(run_python(python, check + folder.path.string()), 0);
}

}  // namespace
}  // namespace tessera
