#include "executor/data/init_model.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/data/tokenizer.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

Parameter matrix(const std::string& name) {
  Parameter parameter;
  parameter.name = name;
  parameter.shape = {100, 37};
  return parameter;
}

std::vector<float> values(const std::string& name, std::uint64_t seed, std::int64_t first,
                          std::size_t count) {
  std::vector<float> result(count);
  initial_values(matrix(name), 0.02, seed, first, result);
  return result;
}

TEST(InitialValues, DependOnSeedNameAndElementOnly) {
  const auto whole = values("a.weight", 1, 0, 3700);
  for (const std::int64_t first : {0, 1, 2, 3, 17, 3600}) {
    const auto part = values("a.weight", 1, first, 90);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first;
  }
  EXPECT_NE(whole, values("b.weight", 1, 0, 3700));
  EXPECT_NE(whole, values("a.weight", 2, 0, 3700));
}

TEST(InitialValues, AreNormalForMatricesOneForNormsZeroForBiases) {
  double sum = 0, squares = 0;
  const auto all = values("a.weight", 5, 0, 3700);
  for (const float x : all) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  // Deviations: of the mean 0.02 / sqrt(3700), of the variance 0.0004 sqrt(2 / 3700); five each.
  EXPECT_NEAR(sum / 3700, 0, 0.0017);
  EXPECT_NEAR(squares / 3700, 0.0004, 0.00005);
  for (const char* name : {"model.norm.weight", "model.layers.0.input_layernorm.weight",
                           "model.layers.0.self_attn.q_norm.weight"}) {
    EXPECT_EQ(values(name, 1, 0, 3), std::vector<float>(3, 1.0f)) << name;
  }
  EXPECT_EQ(values("model.layers.0.self_attn.q_proj.bias", 1, 0, 3), std::vector<float>(3, 0.0f));
}

TEST(InitModel, MakesAFolderThatWeReadAndTransformersRuns) {
  TemporaryFolder temporary;
  const fs::path folder = temporary.path / "model";
  Problems problems;
  ASSERT_TRUE(
      init_model("tiny-qwen2-digits", folder, {.seed = 3, .digit_tokenizer = true}, problems))
      << to_string(problems.at(0));
  const auto model = read_model_spec(folder, problems);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->eos_token, 11);
  EXPECT_EQ(model->pad_token, 10);
  const auto read = ModelFolder::open(folder, problems);
  ASSERT_TRUE(read);
  const ParameterTable table = parameter_table(*model);
  EXPECT_TRUE(check_tensors(*read, table, problems));
  for (const Parameter& row : table.rows) {
    std::vector<float> expected(static_cast<std::size_t>(row.elements()));
    initial_values(row, 0.125, 3, 0, expected);
    const TensorView* view = read->find(row.name);
    ASSERT_EQ(view->dtype, DType::fp32);
    EXPECT_EQ(std::memcmp(view->data.data(), expected.data(), view->data.size()), 0) << row.name;
  }
  EXPECT_TRUE(Tokenizer::open(folder, problems));

  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers: set TESSERA_VENV";
  const std::string check =
      "-c 'import sys, torch\n"
      "from transformers import AutoModelForCausalLM as M, AutoTokenizer as T\n"
      "m, t = M.from_pretrained(sys.argv[1]), T.from_pretrained(sys.argv[1])\n"
      "logits = m(torch.tensor([t(\"r417=\").input_ids])).logits\n"
      "assert logits.shape == (1, 5, 16) and torch.isfinite(logits).all()' ";
  EXPECT_EQ(run_python(python, check + folder.string()), 0);
}

/// Names and shapes of every family are held to transformers' by checkpoint_tensors_test.cc.
TEST(InitModel, JoinsThePartsOfFusedTensorsAsTransformersSavesThem) {
  TemporaryFolder temporary;
  for (const auto& entry : fs::directory_iterator(TESSERA_SOURCE_DIR "/tests/fixtures/models")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("tiny-")) continue;
    SCOPED_TRACE(name);
    Problems problems;
    const bool made = init_model(entry.path(), temporary.path / name, {.threads = 1}, problems);
    ASSERT_TRUE(made) << to_string(problems.at(0));
    const auto model = read_model_spec(entry.path(), problems);
    const auto folder = ModelFolder::open(temporary.path / name, problems);
    ASSERT_TRUE(model && folder);
    std::map<std::string, std::vector<std::int64_t>> written;
    for (const auto& [tensor, view] : folder->tensors()) written[tensor] = view.shape;
    EXPECT_EQ(written, checkpoint_tensors(parameter_table(*model)));
  }

  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers: set TESSERA_VENV";
  const std::string check =
      "-c 'import sys\n"
      "from transformers import AutoModelForCausalLM as M\n"
      "for folder in sys.argv[1:]:\n"
      "    _, info = M.from_pretrained(folder, output_loading_info=True)\n"
      "    assert not any(info.values()), (folder, info)'";
  std::string folders;
  for (const char* name : {"tiny-phi3", "tiny-gpt2", "tiny-glm4", "tiny-qwen3-next"}) {
    folders += " " + (temporary.path / name).string();
  }
  EXPECT_EQ(run_python(python, check + folders), 0);
}

/// FNV-1a over the 32-bit words of a file's tensors.
std::uint64_t digest_of(const fs::path& folder) {
  Problems problems;
  const auto file = open_safetensors(folder / "model.safetensors", problems);
  std::uint64_t hash = 14695981039346656037u;
  for (const TensorView& view : file->tensors) {
    for (std::size_t at = 0; at < view.data.size(); at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, view.data.data() + at, 4);
      hash = (hash ^ word) * 1099511628211u;
    }
  }
  return hash;
}

/// A seed means the same weights in every version and for any number of threads.
TEST(InitModel, ASeedMeansTheSameBitsWhoeverDraws) {
  TemporaryFolder temporary;
  for (const int threads : {1, 2, 5}) {
    Problems problems;
    const fs::path folder = temporary.path / std::to_string(threads);
    ASSERT_TRUE(init_model("tiny-qwen2-digits", folder, {.seed = 3, .threads = threads}, problems));
    EXPECT_EQ(digest_of(folder), 0x0582405bba0e682fu) << threads;
  }
}

TEST(InitModel, WithoutWeightsTheRestIsThere) {
  TemporaryFolder temporary;
  Problems problems;
  const InitModelOptions options{.dtype = DType::bf16, .digit_tokenizer = true, .weights = false};
  ASSERT_TRUE(init_model("tiny-qwen2-digits", temporary.path / "m", options, problems));
  EXPECT_FALSE(fs::exists(temporary.path / "m/model.safetensors"));
  EXPECT_TRUE(Tokenizer::open(temporary.path / "m", problems));
  const auto model = read_model_spec(temporary.path / "m", problems);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->dtype, DType::bf16);
  EXPECT_EQ(initializer_range_of(temporary.path / "m", problems), 0.125);
}

TEST(InitModel, ShardsAndTypesHoldTheSameWeights) {
  TemporaryFolder temporary;
  Problems problems;
  ASSERT_TRUE(init_model("tiny-qwen2-digits", temporary.path / "a", {.seed = 3}, problems));
  ASSERT_TRUE(init_model("tiny-qwen2-digits", temporary.path / "b",
                         {.seed = 3, .dtype = DType::bf16, .max_shard_bytes = 20000}, problems));
  const auto a = ModelFolder::open(temporary.path / "a", problems);
  const auto b = ModelFolder::open(temporary.path / "b", problems);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(fs::exists(temporary.path / "b" / "model.safetensors"));
  for (const auto& [name, wide] : a->tensors()) {
    const TensorView* narrow = b->find(name);
    ASSERT_NE(narrow, nullptr);
    for (std::size_t i = 0; i < narrow->data.size() / 2; ++i) {
      float x;
      std::uint16_t bits;
      std::memcpy(&x, wide.data.data() + 4 * i, 4);
      std::memcpy(&bits, narrow->data.data() + 2 * i, 2);
      const float y = std::bit_cast<float>(std::uint32_t{bits} << 16);
      ASSERT_LE(std::fabs(x - y), std::fabs(x) * 0x1p-8f) << name;
    }
  }
}

TEST(InitModel, RefusesUnknownPresetsSmallVocabulariesAndExistingFolders) {
  TemporaryFolder temporary;
  Problems problems;
  EXPECT_FALSE(init_model("tiny-qwen2-digit", temporary.path / "x", {}, problems));
  EXPECT_NE(to_string(problems.at(0)).find("tiny-qwen2-digits"), std::string::npos);
  problems.clear();
  fs::create_directory(temporary.path / "there");
  EXPECT_FALSE(init_model("tiny-qwen2-digits", temporary.path / "there", {}, problems));
  EXPECT_EQ(problems.size(), 1u);

  problems.clear();
  std::ifstream preset(TESSERA_SOURCE_DIR "/configs/models/tiny-qwen2-digits/config.json");
  std::string config{std::istreambuf_iterator<char>(preset), {}};
  const std::string vocab = "\"vocab_size\": 16";
  config.replace(config.find(vocab), vocab.size(), "\"vocab_size\": 13");
  std::ofstream(temporary.path / "config.json") << config;
  EXPECT_FALSE(init_model(temporary.path / "config.json", temporary.path / "y",
                          {.digit_tokenizer = true}, problems));
  EXPECT_NE(to_string(problems.at(0)).find("16"), std::string::npos);
}

}  // namespace
}  // namespace tessera
