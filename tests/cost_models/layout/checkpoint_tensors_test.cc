// Tensors of saved checkpoints, and the sizes that models were published with.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/model_spec.h"
#include "tests/cost_models/spec/model_fixtures.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

/// parameters.json, where [a-b] in a name stands for every number from a to b.
Shapes read_shapes(const fs::path& file) {
  std::ifstream in(file);
  Shapes shapes;
  const auto expand = [&](auto&& self, const std::string& name,
                          const std::vector<std::int64_t>& shape) -> void {
    const size_t open = name.find('[');
    if (open == std::string::npos) {
      EXPECT_TRUE(shapes.emplace(name, shape).second) << name;
      return;
    }
    const size_t dash = name.find('-', open), close = name.find(']', open);
    const int last = std::stoi(name.substr(dash + 1));
    for (int i = std::stoi(name.substr(open + 1)); i <= last; ++i) {
      self(self, name.substr(0, open) + std::to_string(i) + name.substr(close + 1), shape);
    }
  };
  for (const auto& [name, shape] : nlohmann::json::parse(in).get<Shapes>()) {
    expand(expand, name, shape);
  }
  return shapes;
}

/// Every saved checkpoint holds what the table says it holds.
TEST(ModelSpec, NamesAndShapesAreThoseOfSavedCheckpoints) {
  int checked = 0;
  std::set<ModelFamily> families;
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    if (!fs::exists(entry.path() / "parameters.json")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    Problems problems;
    const std::optional<ModelSpec> model = read_model_spec(entry.path(), problems);
    for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
    if (!model) continue;
    const Shapes saved = read_shapes(entry.path() / "parameters.json");
    const ParameterTable table = parameter_table(*model);
    const Shapes ours = checkpoint_tensors(table);
    EXPECT_EQ(ours.size(), saved.size());
    if (saved.size() < 1000) {
      EXPECT_EQ(ours, saved);
    } else {
      EXPECT_TRUE(ours == saved);
    }
    std::int64_t elements = 0;
    for (const auto& [name, shape] : saved) {
      elements += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    }
    EXPECT_EQ(table.elements(), elements);
    EXPECT_EQ(parameter_count(*model), elements);
    families.insert(model->family);
    ++checked;
  }
  EXPECT_GE(checked, 20);
  EXPECT_EQ(families.size(), kEveryFamily.size());
}

/// Every row in the shape of its storage: consecutive parts, each once.
TEST(ModelSpec, PartsOfOneFusedStorageTensorAreConsecutiveRows) {
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    Problems problems;
    if (!entry.path().filename().string().starts_with("tiny-")) continue;
    const ParameterTable table = parameter_table(read_model_spec(entry.path(), problems).value());
    std::set<std::string> seen;
    std::string last;
    int part = -1;
    for (const Parameter& row : table.rows) {
      if (row.storage != last) {
        EXPECT_TRUE(seen.insert(row.storage).second) << row.storage << " is interrupted";
        part = -1;
      }
      EXPECT_GT(row.part, part) << row.name;
      part = row.part;
      last = row.storage;
    }
  }
}
struct Published {
  std::string name;
  std::int64_t parameters, active;  // millions, as their publications round
  std::int64_t rounding;
};

/// Model cards on huggingface.co; DeepSeek-V2 arXiv:2405.04434, DeepSeek-V3 arXiv:2412.19437 table
/// 1, Mixtral arXiv:2401.04088, Qwen3 arXiv:2505.09388 table 2, gpt-oss arXiv:2508.10925 table 1
/// (its active parameters leave out the input embedding, as those of Qwen1.5-MoE do), Nemotron 3
/// Nano arXiv:2512.20848 (Super and Ultra by their names); the cards of Hy3 and MiniMax-M2 at
/// huggingface.co (its 10 billion active ones leave out embedding and head).
TEST(ModelSpec, PresetsHaveTheirPublishedSizes) {
  const std::map<std::string, std::int64_t> exact{
      {"qwen2.5-7b", 7615616512}, {"llama3.1-8b", 8030261248},   {"llama3.1-70b", 70553706496},
      {"gpt2", 124439808},        {"mixtral-8x7b", 46702792704}, {"qwen2.5-vl-7b", 8292166656}};
  for (const auto& [name, parameters] : exact) {
    Problems problems;
    const std::optional<ModelSpec> model = read_model_spec(name, problems);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(parameter_count(*model), parameters) << name;
  }
  const std::vector<Published> published{
      {"mixtral-8x7b", 46700, 12900, 100},
      {"mixtral-8x22b", 141000, 39000, 500},
      {"qwen1.5-moe-a2.7b", 14300, 2700, 100},
      {"qwen2-57b-a14b", 57400, 14200, 300},
      {"qwen3-30b-a3b", 30500, 3300, 100},
      {"qwen3-235b-a22b", 235000, 22000, 500},
      {"deepseek-v2-lite", 15700, 2400, 300},
      {"deepseek-v2", 236000, 21000, 500},
      {"deepseek-v3", 671000, 37000, 700},
      {"gpt-oss-20b", 20910, 3610, 600},
      {"gpt-oss-120b", 116830, 5130, 600},
      {"nemotron-4-340b", 341000, 341000, 500},
      {"hy3", 295000, 21000, 500},
      {"minimax-m2", 229000, 11000, 500},
      {"deepseek-v3.2", 671900, 37900, 700},
      {"nemotron3-nano-30b-a3b", 31600, 3600, 100},
      {"nemotron3-super-120b-a12b", 120000, 12000, 800},
      {"nemotron3-ultra-550b-a55b", 550000, 55000, 1100},
  };
  for (const Published& known : published) {
    SCOPED_TRACE(known.name);
    Problems problems;
    const std::optional<ModelSpec> model = read_model_spec(known.name, problems);
    ASSERT_TRUE(model);
    EXPECT_NEAR(parameter_count(*model) / 1e6, known.parameters, known.rounding);
    EXPECT_NEAR(active_parameter_count(*model) / 1e6, known.active, known.rounding);
  }
}

/// DeepSeek-V4's report: 284 billion with 13 active and 1.6 trillion with 49 active, an embedding
/// aside; what one token's experts are named by is no parameter.
TEST(ModelSpec, DeepSeekV4HasItsPublishedSizes) {
  struct Card {
    const char* name;
    double parameters, active;  // billions
  };
  for (const Card& card : {Card{"deepseek-v4-flash", 284, 13}, Card{"deepseek-v4-pro", 1600, 49}}) {
    Problems problems;
    const auto model = read_model_spec(card.name, problems);
    ASSERT_TRUE(model) << card.name;
    const auto with_mtp =
        static_cast<double>(parameter_count(*model) + mtp_parameter_count(*model));
    const auto without = static_cast<double>(parameter_count(*model));
    EXPECT_LE(without / 1e9, card.parameters + 0.5) << card.name;
    EXPECT_GE(with_mtp / 1e9, card.parameters - 2) << card.name;
    const std::int64_t embedding = model->vocab * model->hidden;
    EXPECT_NEAR(static_cast<double>(active_parameter_count(*model) - embedding) / 1e9, card.active,
                0.5)
        << card.name;
  }
}

// The files of GLM-5.2 take 1,506,659,919,872 bytes in 16 bit (its index): 57 of 78 layers have no
// indexer, the layer that predicts further tokens has one; corrections of scores are in 32 bit.
TEST(Presets, LayersThatShareAChoiceHaveWhatThePublishedFilesHave) {
  Problems problems;
  const auto model = read_model_spec("glm5.2", problems);
  ASSERT_TRUE(model) << Error(ExitCode::bad_input, problems).what();
  const std::int64_t corrections = 76L * 256;
  EXPECT_EQ(2 * (parameter_count(*model) + mtp_parameter_count(*model) + corrections),
            1'506'659'919'872);
}

/// "11.5B unique parameters, excluding the shared embedding and head": README_WEIGHTS.md of
/// deepseek-ai/DeepSeek-V3.
TEST(ModelSpec, TheMultiTokenPredictionModuleHasItsPublishedSize) {
  Problems problems;
  const auto model = read_model_spec("deepseek-v3", problems);
  ASSERT_TRUE(model);
  EXPECT_NEAR(mtp_parameter_count(*model) / 1e9, 11.5, 0.15);
  EXPECT_EQ(model->mtp_layers, 1);
}
// Parameters as the safetensors files of the published checkpoints count them (their cards at
// huggingface.co); tied embeddings once, DeepSeek-V3 without its MTP layer.
using PublishedCounts = std::vector<std::pair<std::string, std::int64_t>>;

void expect_counts(const PublishedCounts& published) {
  for (const auto& [name, count] : published) {
    Problems problems;
    const auto model = read_model_spec(name, problems);
    ASSERT_TRUE(model.has_value()) << Error(ExitCode::bad_input, problems).what();
    EXPECT_EQ(parameter_count(*model), count) << name;
  }
}

TEST(Presets, HaveThePublishedNumbersOfParameters) {
  expect_counts({{"qwen2.5-0.5b", 494'032'768},
                 {"qwen2.5-1.5b", 1'543'714'304},
                 {"qwen2.5-3b", 3'085'938'688},
                 {"qwen2.5-7b", 7'615'616'512},
                 {"qwen2.5-14b", 14'770'033'664},
                 {"qwen2.5-32b", 32'763'876'352},
                 {"qwen2.5-72b", 72'706'203'648},
                 {"qwen2-7b", 7'615'616'512},
                 {"qwen3-0.6b", 596'049'920},
                 {"qwen3-1.7b", 1'720'574'976},
                 {"qwen3-4b", 4'022'468'096},
                 {"qwen3-8b", 8'190'735'360},
                 {"qwen3-14b", 14'768'307'200},
                 {"qwen3-32b", 32'762'123'264},
                 {"qwen3-30b-a3b", 30'532'122'624},
                 {"qwen3-235b-a22b", 235'093'634'560},
                 {"llama2-7b", 6'738'415'616},
                 {"llama2-70b", 68'976'648'192},
                 {"llama3.1-8b", 8'030'261'248},
                 {"llama3.1-70b", 70'553'706'496},
                 {"llama3.1-405b", 405'853'388'800},
                 {"llama3.2-1b", 1'235'814'400},
                 {"llama3.2-3b", 3'212'749'824},
                 {"mistral-7b", 7'248'023'552},
                 {"mistral-nemo", 12'247'782'400},
                 {"mixtral-8x7b", 46'702'792'704},
                 {"mixtral-8x22b", 140'620'634'112},
                 {"deepseek-llm-7b", 6'910'365'696},
                 {"deepseek-v2-lite", 15'706'484'224},
                 {"deepseek-v2", 235'741'434'880},
                 {"deepseek-v3", 671'026'419'200},
                 {"qwen1.5-moe-a2.7b", 14'315'784'192},
                 {"gpt-oss-20b", 20'914'757'184},
                 {"gpt-oss-120b", 116'829'156'672},
                 {"gpt2", 124'439'808},
                 {"gemma2-2b", 2'614'341'888},
                 {"gemma2-9b", 9'241'705'984},
                 {"gemma2-27b", 27'227'128'320},
                 {"gemma3-1b", 999'885'952},
                 {"phi3-mini", 3'821'079'552},
                 {"phi4", 14'659'507'200},
                 {"olmo2-7b", 7'298'617'344},
                 {"olmo2-13b", 13'716'198'400},
                 {"olmo2-32b", 32'234'279'936},
                 {"olmo3-7b", 7'298'011'136},
                 {"seed-oss-36b", 36'151'104'512},
                 {"minimax-m1", 456'089'655'296},
                 {"glm4-9b", 9'400'279'040},
                 {"smollm3-3b", 3'075'098'624},
                 {"olmoe-1b-7b", 6'919'161'856},
                 {"ernie4.5-0.3b", 360'748'032}});
}

TEST(Presets, HaveThePublishedNumbersOfParametersWithTheirTowers) {
  expect_counts({{"qwen3-vl-2b", 2'127'532'032},
                 {"qwen3-vl-4b", 4'437'815'808},
                 {"qwen3-vl-8b", 8'767'123'696},
                 {"qwen3-vl-30b-a3b", 31'070'754'032},
                 {"gemma3-4b", 4'300'079'472},
                 {"gemma3-12b", 12'187'325'040},
                 {"gemma3-27b", 27'432'406'640},
                 {"llama4-scout", 108'641'793'536},
                 {"llama4-maverick", 401'583'781'376},
                 {"qwen2.5-vl-3b", 3'754'622'976},
                 {"qwen2.5-vl-7b", 8'292'166'656},
                 {"glm4.5v", 107'710'933'120}});
}

// The files of DeepSeek-V3.2-Exp count 685,396,921,376 elements and those of V3 684,531,386,000
// (their cards): an indexer in each of 61 layers and in the one that predicts further tokens, its
// two large matrices with a scale for each of 128 x 128 elements.
TEST(Presets, AnIndexerHasWhatThePublishedFilesHaveBeyondThoseOfTheModelWithout) {
  Problems problems;
  const auto with = read_model_spec("deepseek-v3.2", problems);
  const auto without = read_model_spec("deepseek-v3", problems);
  ASSERT_TRUE(with && without) << Error(ExitCode::bad_input, problems).what();
  const std::int64_t scales = 64 * 12 + 56;
  EXPECT_EQ(parameter_count(*with) - parameter_count(*without) + mtp_parameter_count(*with) -
                mtp_parameter_count(*without) + 62 * scales,
            685'396'921'376 - 684'531'386'000);
}

// Names of their cards: ERNIE-4.5-21B-A3B; Hunyuan-A13B, "80 billion parameters in total".
TEST(Presets, HaveTheirCardsBillionsInAllAndOfAToken) {
  struct Card {
    const char* name;
    double all, active;
  };
  for (const Card& card : {Card{"ernie4.5-21b-a3b", 21.8, 3}, {"hunyuan-a13b", 80.4, 13}}) {
    Problems problems;
    const auto model = read_model_spec(card.name, problems);
    ASSERT_TRUE(model.has_value()) << Error(ExitCode::bad_input, problems).what();
    EXPECT_NEAR(static_cast<double>(parameter_count(*model)) * 1e-9, card.all, 0.05) << card.name;
    EXPECT_NEAR(static_cast<double>(active_parameter_count(*model)) * 1e-9, card.active, 0.5)
        << card.name;
  }
}

// Files of these hold their multi-token-prediction layers, GLM-4.5's with embedding and head of
// their own.
TEST(Presets, HaveThePublishedNumbersWithTheLayersThatPredictFurtherTokens) {
  struct Card {
    const char* name;
    std::int64_t count;
    int own_ends;  // embeddings and heads
  };
  for (const Card& card : {Card{"qwen3-next-80b-a3b", 81'324'862'720, 0},
                           {"qwen3.5-35b-a3b", 35'951'822'704, 0},
                           {"glm4.5-air", 110'468'824'832, 2},
                           {"glm4.7-flash", 31'221'488'576, 2},
                           {"glm4.5", 358'337'791'296, 2}}) {
    Problems problems;
    const auto model = read_model_spec(card.name, problems);
    ASSERT_TRUE(model.has_value()) << Error(ExitCode::bad_input, problems).what();
    EXPECT_EQ(parameter_count(*model) + mtp_parameter_count(*model) +
                  card.own_ends * model->vocab * model->hidden,
              card.count)
        << card.name;
  }
}

}  // namespace
}  // namespace tessera
