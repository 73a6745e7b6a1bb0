#include "cost_models/spec/model_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/layout/parameter_table.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

fs::path fixtures() {
  const char* folder = std::getenv("TESSERA_FIXTURES_DIR");
  return folder != nullptr ? fs::path(folder)
                           : fs::path(TESSERA_SOURCE_DIR) / "tests/fixtures/models";
}

/// What a saved checkpoint holds and what the table says it holds.
TEST(ModelSpec, NamesAndShapesAreThoseOfSavedCheckpoints) {
  int checked = 0;
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    if (!fs::exists(entry.path() / "parameters.json")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    Problems problems;
    const std::optional<ModelSpec> model = read_model_spec(entry.path(), problems);
    for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
    if (!model) continue;
    std::ifstream in(entry.path() / "parameters.json");
    const auto saved =
        nlohmann::json::parse(in).get<std::map<std::string, std::vector<std::int64_t>>>();
    std::map<std::string, std::vector<std::int64_t>> ours;
    for (const Parameter& row : parameter_table(*model).rows) ours[row.name] = row.shape;
    EXPECT_EQ(ours, saved);
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

/// Known sizes: Qwen2.5-7B has 7,615,616,512 parameters, Llama-3.1-8B 8,030,261,248.
TEST(ModelSpec, PresetsHaveTheirPublishedSizes) {
  for (const auto& [name, parameters] :
       std::map<std::string, std::int64_t>{{"qwen2.5-7b", 7615616512},
                                           {"llama3.1-8b", 8030261248},
                                           {"llama3.1-70b", 70553706496}}) {
    Problems problems;
    const std::optional<ModelSpec> model = read_model_spec(name, problems);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(parameter_table(*model).elements(), parameters) << name;
  }
}

nlohmann::json valid() {
  return {{"model_type", "qwen2"},         {"architectures", {"Qwen2ForCausalLM"}},
          {"num_hidden_layers", 2},        {"hidden_size", 64},
          {"num_attention_heads", 4},      {"num_key_value_heads", 2},
          {"intermediate_size", 176},      {"vocab_size", 131},
          {"rms_norm_eps", 1e-6},          {"rope_theta", 1e4},
          {"torch_dtype", "float32"},      {"tie_word_embeddings", true},
          {"max_position_embeddings", 512}};
}

std::optional<ModelSpec> parse(const nlohmann::json& config, Problems& problems) {
  return parse_model_spec(config.dump(), "config.json", problems);
}

TEST(ModelSpec, OldAndNewKeysMeanTheSame) {
  nlohmann::json old_keys = valid(), new_keys = valid();
  old_keys["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  new_keys.erase("rope_theta");
  new_keys.erase("torch_dtype");
  new_keys["dtype"] = "float32";
  new_keys["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e4}};
  Problems problems;
  const auto a = parse(old_keys, problems), b = parse(new_keys, problems);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(a->rope.kind, RopeScalingKind::linear);
}

/// attention_factor = 0.1 ln(factor) + 1 (YaRN, arXiv:2309.00071, eq. 22).
TEST(ModelSpec, YarnResolvesItsAttentionFactor) {
  nlohmann::json config = valid();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  Problems problems;
  const auto model = parse(config, problems);
  ASSERT_TRUE(model);
  EXPECT_NEAR(model->rope.attention_factor, 0.1 * std::log(4.0) + 1, 1e-12);
}

TEST(ModelSpec, QwenSlidesOnlyWhenItsSwitchIsOn) {
  nlohmann::json config = valid();
  config["sliding_window"] = 16;
  Problems problems;
  EXPECT_EQ(parse(config, problems)->sliding_window, 0);
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 0;
  EXPECT_EQ(parse(config, problems)->sliding_window, 16);
}

TEST(ModelSpec, ATokenClassifierHasAValueHead) {
  nlohmann::json config = valid();
  config["architectures"] = {"Qwen2ForTokenClassification"};
  Problems problems;
  EXPECT_EQ(parse(config, problems)->head, ModelHead::value);
}

struct Malformed {
  const char* key;
  nlohmann::json value;  // null JSON value "erase": discarded
  const char* place;
};

TEST(ModelSpec, EveryMalformedConfigIsRefusedAtItsPlace) {
  const std::vector<Malformed> cases{
      {"model_type", "gpt_neox", "model_type"},
      {"model_type", 7, "model_type"},
      {"architectures", {"Qwen2ForImages"}, "architectures"},
      {"architectures", "Qwen2ForCausalLM", "architectures"},
      {"num_hidden_layers", 0, "num_hidden_layers"},
      {"num_hidden_layers", -3, "num_hidden_layers"},
      {"num_hidden_layers", "two", "num_hidden_layers"},
      {"num_hidden_layers", 2.5, "num_hidden_layers"},
      {"hidden_size", 63, "hidden_size"},
      {"hidden_size", 9223372036854775807LL, "hidden_size"},
      {"num_attention_heads", 0, "num_attention_heads"},
      {"num_key_value_heads", 3, "num_key_value_heads"},
      {"head_dim", 7, "head_dim"},
      {"intermediate_size", nlohmann::json::array({1}), "intermediate_size"},
      {"vocab_size", true, "vocab_size"},
      {"hidden_act", "gelu", "hidden_act"},
      {"rms_norm_eps", 0, "rms_norm_eps"},
      {"rope_theta", -1, "rope_theta"},
      {"rope_scaling", {{"rope_type", "longrope"}}, "rope_type"},
      {"rope_scaling", {{"rope_type", "linear"}}, "factor"},
      {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}, "low_freq_factor"},
      {"rope_scaling", "yarn", "rope_scaling"},
      {"torch_dtype", "int8", "torch_dtype"},
      {"tie_word_embeddings", 1, "tie_word_embeddings"},
      {"layer_types", {"full_attention", "sliding_attention"}, "layer_types"},
      {"eos_token_id", {"a"}, "eos_token_id"},
  };
  for (const Malformed& malformed : cases) {
    nlohmann::json config = valid();
    config[malformed.key] = malformed.value;
    SCOPED_TRACE(config.dump());
    Problems problems;
    EXPECT_FALSE(parse(config, problems));
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(problems[0].place.find(malformed.place), std::string::npos) << problems[0].place;
  }
}

TEST(ModelSpec, AllProblemsOfAConfigComeAtOnce) {
  nlohmann::json config = valid();
  config.erase("hidden_size");
  config["vocab_size"] = -1;
  Problems problems;
  EXPECT_FALSE(parse(config, problems));
  EXPECT_GE(problems.size(), 2u);
}

}  // namespace
}  // namespace tessera
