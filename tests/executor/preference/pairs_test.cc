#include "executor/preference/pairs.h"

#include <gmock/gmock.h>

#include <fstream>

#include "cost_models/documents/problem.h"
#include "executor/data/init_model.h"
#include "executor/data/parquet_rows.h"
#include "tests/executor/python_oracle.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;

std::vector<PreferencePair> parsed(std::string_view text) {
  Problems problems;
  const auto pairs = parse_preferences(text, "pairs.jsonl", problems);
  EXPECT_TRUE(problems.empty());
  return pairs.value_or(std::vector<PreferencePair>{});
}

std::string refusal(std::string_view text) {
  Problems problems;
  EXPECT_FALSE(parse_preferences(text, "pairs.jsonl", problems));
  return problems.empty() ? "" : to_string(problems.front());
}

TEST(Preferences, AreReadInEveryFormThatTrlTakes) {
  const std::vector<ChatMessage> asked{{"user", "2+2?"}};
  EXPECT_EQ(parsed(R"({"prompt": "2+2?", "chosen": "4", "rejected": "5", "margin": 1})"
                   "\n\n"
                   R"({"prompt": "2+2?", "chosen": "4", "rejected": "5", "score": 0.5})"),
            (std::vector<PreferencePair>{{{{"", "2+2?"}}, "4", "5", 1, "1"},
                                         {{{"", "2+2?"}}, "4", "5", 0, "3"}}));
  EXPECT_EQ(parsed(R"({"chosen": "2+2? 4", "rejected": "2+2? 5", "margin": null})"),
            (std::vector<PreferencePair>{{{}, "2+2? 4", "2+2? 5", 0, "1"}}));
  EXPECT_EQ(parsed(R"({"prompt": [{"role": "user", "content": "2+2?"}],)"
                   R"("chosen": [{"role": "assistant", "content": "4"}],)"
                   R"("rejected": [{"role": "assistant", "content": "5"}], "margin": 0.5})"),
            (std::vector<PreferencePair>{{asked, "4", "5", 0.5, "1"}}));
  EXPECT_EQ(parsed(R"({"chosen": [{"role": "user", "content": "2+2?"},)"
                   R"({"role": "assistant", "content": "4"}],)"
                   R"("rejected": [{"role": "user", "content": "2+2?"},)"
                   R"({"role": "assistant", "content": "5"}]})"),
            (std::vector<PreferencePair>{{asked, "4", "5", 0, "1"}}));
}

/// Rows that pyarrow has made of the lines of two files, and one without a rejected answer.
constexpr const char* kRows = R"(
import json, sys, pyarrow as pa, pyarrow.parquet as pq
folder = sys.argv[1]
plain = [{'prompt': 'a', 'chosen': 'b', 'rejected': 'c', 'margin': 0.5, 'source': 'x'},
         {'prompt': None, 'chosen': 'a b', 'rejected': 'a \u4f60', 'margin': None}]
said = lambda text: {'role': 'assistant', 'content': text}
asked = [{'role': 'system', 'content': 's'}, {'role': 'user', 'content': 'q'}]
talks = [{'chosen': asked + [said('b')], 'rejected': asked + [said('c')], 'score': 1}] * 300
for name, rows in (('plain', plain), ('talks', talks)):
    with open(f'{folder}/{name}.jsonl', 'w') as lines:
        lines.writelines(json.dumps(row) + '\n' for row in rows)
    pq.write_table(pa.Table.from_pylist(rows), f'{folder}/{name}.parquet', row_group_size=64)
plain[1]['rejected'] = None
pq.write_table(pa.Table.from_pylist(plain), f'{folder}/none.parquet')
pq.write_table(pa.table({'chosen': pa.array([], pa.string())}), f'{folder}/empty.parquet')
)";

TEST(Preferences, RowsOfParquetAreReadAsLinesAre) {
  if (!reads_parquet()) GTEST_SKIP() << "this build has no libparquet";
  const std::string python = python_with("pyarrow");
  ASSERT_NE(python, "");
  const TemporaryFolder folder;
  std::ofstream(folder.path / "rows.py") << kRows;
  ASSERT_EQ(run_python(python, (folder.path / "rows.py").string() + " " + folder.path.string()), 0);
  Problems problems;
  for (const std::string name : {"plain", "talks"}) {
    const auto lines = read_preferences(folder.path / (name + ".jsonl"), problems);
    auto rows = read_preferences(folder.path / (name + ".parquet"), problems);
    ASSERT_TRUE(lines && rows) << to_string(problems.front());
    EXPECT_EQ(rows->back().place, "row " + lines->back().place);
    for (std::size_t i = 0; i < rows->size(); ++i) (*rows)[i].place = std::to_string(i + 1);
    EXPECT_EQ(*rows, *lines);
  }
  EXPECT_FALSE(read_preferences(folder.path / "none.parquet", problems));
  EXPECT_THAT(to_string(problems.front()), HasSubstr("none.parquet:row 2 (/rejected): found null"));
  problems.clear();
  EXPECT_FALSE(read_preferences(folder.path / "empty.parquet", problems));
  EXPECT_THAT(to_string(problems.front()), HasSubstr("one pair per row"));
}

TEST(Preferences, SayWhereAPairIsNone) {
  EXPECT_THAT(
      refusal(R"({"prompt": "a", "chosen": "b"})"),
      testing::AllOf(HasSubstr("pairs.jsonl"), HasSubstr("1:1 (/rejected)"), HasSubstr("nothing")));
  EXPECT_THAT(refusal("\n"
                      R"({"prompt": "a", "chosen": "b", "rejected": "b"})"),
              testing::AllOf(HasSubstr("2:"), HasSubstr("the text of chosen")));
  EXPECT_THAT(refusal(R"({"prompt": "a", "chosen": 4, "rejected": "b"})"), HasSubstr("/chosen"));
  EXPECT_THAT(refusal(R"({"prompt": [], "chosen": "a", "rejected": "b"})"), HasSubstr("/prompt"));
  EXPECT_THAT(refusal(R"({"chosen": "a", "rejected": "b", "margin": "1"})"), HasSubstr("/margin"));
  EXPECT_THAT(refusal(R"({"chosen": [{"role": "user", "content": "a"}], "rejected": "b"})"),
              HasSubstr("the last of 'user'"));
  EXPECT_THAT(refusal(R"({"chosen": [{"role": "user", "content": "a"},)"
                      R"({"role": "assistant", "content": "b"}],)"
                      R"("rejected": [{"role": "user", "content": "c"},)"
                      R"({"role": "assistant", "content": "d"}]})"),
              HasSubstr("the same messages before the last one"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("an object per line"));
  EXPECT_THAT(refusal("{\"chosen\": "), HasSubstr("1:"));
  EXPECT_THAT(refusal("\n"), HasSubstr("no pair"));
}

class PreferenceTokens : public testing::Test {
 protected:
  void SetUp() override {
    Problems problems;
    init_model(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/models/tiny-qwen2-digits", model_,
               {.digit_tokenizer = true}, problems);
    ASSERT_TRUE(problems.empty()) << to_string(problems.front());
    std::ofstream(file_) << R"({"prompt": "12345", "chosen": "6", "rejected": "78"})"
                         << "\n"
                         << R"({"prompt": "1", "chosen": "23", "rejected": "4", "margin": 2})";
  }

  PreferenceSet read(std::int64_t most, OverlongPair overlong) const {
    return read_preference_set({.files = {file_},
                                .model = model_,
                                .max_tokens = most,
                                .overlong = overlong,
                                .end_token = 11});
  }

  TemporaryFolder folder_;
  std::filesystem::path model_ = folder_.path / "model", file_ = folder_.path / "pairs.jsonl";
};

TEST_F(PreferenceTokens, EndAnswersAndTakeTheTokenBehindAsTheResponse) {
  const PreferenceSet set = read(0, OverlongPair::error);
  ASSERT_EQ(set.pairs.size(), 2U);
  const std::vector<TokenSequence> sequences = set.sequences({1});
  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[0].prompt.size(), 1U + 2U + 1U);
  EXPECT_EQ(sequences[1].prompt.size(), 1U + 1U + 1U);
  EXPECT_EQ(sequences[0].prompt.back(), sequences[1].prompt.back());  // the end
  EXPECT_EQ(sequences[0].response.size(), 1U);
  EXPECT_EQ(set.pairs[1].margin, 2);
}

/// Of several tokens that end a response, as Llama 3 has them, the one of the chat template.
TEST_F(PreferenceTokens, EndAnswersAsTheChatTemplateDoes) {
  std::ofstream(model_ / "generation_config.json") << R"({"eos_token_id": [10, 11]})";
  EXPECT_EQ(read(0, OverlongPair::error).end, 10);
  std::ofstream(model_ / "chat_template.jinja")
      << "{% for m in messages %}{% if m.role == 'user' %}<|pad|>{% else %}"
         "{{ m.content }}=<|endoftext|><|pad|>{% endif %}{% endfor %}";
  const PreferenceSet set = read(0, OverlongPair::error);
  EXPECT_EQ(set.end, 11);
  EXPECT_EQ(set.sequences({0})[0].prompt.back(), 11);
}

TEST_F(PreferenceTokens, ThatAreTooManyAreRefusedLeftOutOrCut) {
  try {
    read(6, OverlongPair::error);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("pairs.jsonl:1: found 8 tokens, 3 of them"));
  }
  const PreferenceSet left = read(6, OverlongPair::filter), cut = read(6, OverlongPair::truncate);
  EXPECT_EQ(left.pairs.size(), 1U);
  EXPECT_THAT(left.notes.at(0), HasSubstr("1 of 2 pairs"));
  ASSERT_EQ(cut.pairs.size(), 2U);
  EXPECT_EQ(cut.sequences({0})[1].prompt.size(), 6U);
  EXPECT_NE(cut.digest(), left.digest());
  EXPECT_THROW(read(3, OverlongPair::truncate), Error);
}

}  // namespace
}  // namespace tessera
