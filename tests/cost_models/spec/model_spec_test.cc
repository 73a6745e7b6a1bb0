#include "cost_models/spec/model_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/families.h"
#include "cost_models/spec/spec_document.h"
#include "tests/cost_models/spec/model_config.h"
#include "tests/cost_models/spec/model_fixtures.h"

namespace tessera {
namespace {

TEST(ModelSpec, OldAndNewKeysMeanTheSame) {
  nlohmann::json old_keys = valid_config(), new_keys = valid_config();
  old_keys["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  new_keys.erase("rope_theta");
  new_keys.erase("torch_dtype");
  new_keys["dtype"] = "float32";
  new_keys["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e4}};
  Problems problems;
  const auto a = parse_config(old_keys, problems), b = parse_config(new_keys, problems);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(a->rope.kind, RopeScalingKind::linear);
}

/// attention_factor = 0.1 ln(factor) + 1 (YaRN, arXiv:2309.00071, eq. 22).
TEST(ModelSpec, YarnResolvesItsAttentionFactor) {
  nlohmann::json config = valid_config();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  Problems problems;
  const auto model = parse_config(config, problems);
  ASSERT_TRUE(model);
  EXPECT_NEAR(model->rope.attention_factor, 0.1 * std::log(4.0) + 1, 1e-12);
}

/// transformers 5.17: null is num_attention_heads where a class takes it, whatever its default is.
TEST(ModelSpec, NullKeyValueHeadsAreAsManyAsQueryHeads) {
  nlohmann::json config = valid_config();
  config["num_key_value_heads"] = nullptr;
  for (const auto& [type, name] : {std::pair{"qwen2", "Qwen2ForCausalLM"},
                                   {"qwen3", "Qwen3ForCausalLM"},
                                   {"llama", "LlamaForCausalLM"}}) {
    config["model_type"] = type;
    config["architectures"] = {name};
    Problems problems;
    const auto model = parse_config(config, problems);
    ASSERT_TRUE(model) << type << Error(ExitCode::bad_input, problems).what();
    EXPECT_EQ(model->kv_heads, 4) << type;
  }
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  Problems problems;
  EXPECT_FALSE(parse_config(config, problems).has_value());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].found, "null");
}

TEST(ModelSpec, QwenSlidesOnlyWhenItsSwitchIsOn) {
  nlohmann::json config = valid_config();
  config["sliding_window"] = 16;
  Problems problems;
  EXPECT_EQ(parse_config(config, problems)->sliding_window, 0);
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 0;
  EXPECT_EQ(parse_config(config, problems)->sliding_window, 16);
}

/// What a plan writes out it reads back, whatever the family.
TEST(ModelSpec, EveryFamilyComesBackFromAPlanAsItWas) {
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures())) {
    SCOPED_TRACE(entry.path().filename().string());
    Problems problems;
    const auto model = read_model_spec(entry.path(), problems);
    ASSERT_TRUE(model);
    const std::string text = json_text(to_node(*model));
    const auto document = parse_json(text, "plan.json", problems);
    ASSERT_TRUE(document);
    ObjectReader reader(*document, problems);
    const ModelSpec again = model_from(reader);
    for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
    EXPECT_TRUE(again == *model);
    EXPECT_EQ(json_text(to_node(again)), text);
    ++checked;
  }
  EXPECT_GE(checked, 50);
}

/// Megatron-LM's arguments state parts and no family.
TEST(ModelSpec, TheFamilyFollowsFromThePartsOfAModel) {
  std::set<ModelFamily> families;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures())) {
    SCOPED_TRACE(entry.path().filename().string());
    Problems problems;
    const auto model = read_model_spec(entry.path(), problems);
    ASSERT_TRUE(model);
    families.insert(model->family);
    if (facts_of(model->family).signature.by_name) {
      EXPECT_NE(family_with_parts_of(*model), model->family);
      continue;
    }
    // A Mistral without windows has the parts of a Llama.
    const bool plain = model->family == ModelFamily::mistral && model->sliding_window == 0;
    EXPECT_EQ(family_with_parts_of(*model), plain ? ModelFamily::llama : model->family);
  }
  EXPECT_EQ(families.size(), kEveryFamily.size());
  ModelSpec unknown;
  unknown.norm = NormKind::layer_norm;
  EXPECT_EQ(family_with_parts_of(unknown), std::nullopt);
}

TEST(ModelSpec, APlanMayNotTakeFromAFamilyWhatItHas) {
  Problems problems;
  const auto model = read_model_spec(fixtures() / "tiny-mixtral", problems);
  ASSERT_TRUE(model);
  for (const auto& [key, value] : std::map<std::string, nlohmann::json>{
           {"moe", nullptr}, {"mla", nlohmann::json::object()}, {"family", "llama"}}) {
    auto spec = nlohmann::json::parse(json_text(to_node(*model)));
    spec[key] = value;
    const auto document = parse_json(spec.dump(), "plan.json", problems);
    ObjectReader reader(*document, problems);
    model_from(reader);
    EXPECT_FALSE(problems.empty()) << key;
    problems.clear();
  }
}

TEST(ModelSpec, LayersWithExpertsFollowTheConfig) {
  Problems problems;
  const auto dense = [&](const std::string& name) {
    const auto model = read_model_spec(fixtures() / name, problems).value();
    std::vector<std::int64_t> layers;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      if (!is_moe_layer(model, layer)) layers.push_back(layer);
    }
    EXPECT_EQ(moe_layer_count(model), model.layers - static_cast<std::int64_t>(layers.size()));
    return layers;
  };
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(dense("tiny-mixtral"), Layers{});
  EXPECT_EQ(dense("tiny-qwen2-moe"), Layers{1});            // mlp_only_layers
  EXPECT_EQ(dense("tiny-qwen3-moe-step"), (Layers{0, 2}));  // decoder_sparse_step 2
  EXPECT_EQ(dense("deepseek-v3"), (Layers{0, 1, 2}));       // first_k_dense_replace 3
  EXPECT_EQ(dense("tiny-gpt2"), (Layers{0, 1, 2}));
}

TEST(ModelSpec, GptOssSlidesInEveryOtherLayer) {
  Problems problems;
  const auto model = read_model_spec("gpt-oss-20b", problems);
  ASSERT_TRUE(model);
  EXPECT_EQ(window_of_layer(*model, 0), 128);
  EXPECT_EQ(window_of_layer(*model, 1), 0);
  EXPECT_EQ(model->full_attention_layers.size(), 12u);
}

/// What transformers 4 wrote flat, transformers 5 writes below text_config.
TEST(ModelSpec, FlatAndNestedConfigsOfAVisionModelMeanTheSame) {
  Problems problems;
  std::ifstream in(fixtures() / "qwen2.5-vl-7b/config.json");
  const nlohmann::json flat = nlohmann::json::parse(in);
  nlohmann::json nested = flat;
  const std::set<std::string> outer{"architectures", "model_type", "vision_config", "torch_dtype"};
  for (const auto& [key, value] : flat.items()) {
    if (outer.contains(key)) continue;
    nested["text_config"][key] = value;
    nested.erase(key);
  }
  const auto a = parse_config(flat, problems), b = parse_config(nested, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(a->vision->hidden, 1280);
}

// transformers 5.17 on the meta device has 8,292,166,656 parameters with head_dim 24, with 8 and
// without: Qwen2_5_VLAttention takes hidden_size / num_attention_heads.
TEST(ModelSpec, Qwen25VlHasTheHeadsOfItsHiddenSizeWhateverHeadDimSays) {
  std::ifstream in(fixtures() / "qwen2.5-vl-7b/config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  Problems problems;
  const auto without = parse_config(config, problems);
  config["head_dim"] = 24;
  const auto with = parse_config(config, problems);
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->head_dim, 3584 / 28);
  EXPECT_EQ(*with, *without);
}

// Both names of a renamed key (attribute_map of transformers' classes): one value is read, two are
// refused, each with its name.
TEST(ModelSpec, TwoNamesOfOneKeyHaveOneValue) {
  for (const auto& [fixture, name, other] :
       {std::tuple{"tiny-mixtral", "num_local_experts", "num_experts"},
        {"tiny-qwen3-moe", "num_local_experts", "num_experts"},
        {"tiny-deepseek-v3", "n_routed_experts", "num_local_experts"},
        {"tiny-gpt-oss", "num_experts_per_tok", "experts_per_token"}}) {
    std::ifstream in(fixtures() / fixture / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    const auto stated = config.at(name).get<std::int64_t>();
    SCOPED_TRACE(fixture);
    Problems problems;
    const auto alone = parse_config(config, problems);
    config[other] = stated;
    EXPECT_EQ(parse_config(config, problems), alone);
    EXPECT_TRUE(problems.empty());
    config[other] = stated + 1;
    EXPECT_FALSE(parse_config(config, problems));
    ASSERT_EQ(problems.size(), 1U);
    const std::string told = problems[0].place + " " + problems[0].found;
    for (const std::string& word : {std::string(name), std::string(other), std::to_string(stated),
                                    std::to_string(stated + 1)}) {
      EXPECT_NE(told.find(word), std::string::npos) << told;
    }
  }
}

TEST(ModelSpec, LayersOfLinearAttentionFollowTheConfig) {
  Problems problems;
  const auto model = read_model_spec("qwen3.5-35b-a3b", problems);
  ASSERT_TRUE(model) << Error(ExitCode::bad_input, problems).what();
  EXPECT_TRUE(is_linear_layer(*model, 0));
  EXPECT_FALSE(is_linear_layer(*model, 3));
  EXPECT_EQ(attention_layer_count(*model), 10);
  EXPECT_EQ(attention_layer_count(*read_model_spec("qwen3-8b", problems)), 36);
  // Without layer_types every full_attention_interval-th layer sees all.
  std::ifstream in(fixtures() / "tiny-qwen3-next/config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  config.erase("layer_types");
  config["full_attention_interval"] = 2;
  EXPECT_EQ(parse_config(config, problems)->full_attention_layers, std::vector<std::int64_t>{1});
  config["layer_types"] = std::vector<std::string>(3, "linear_attention");
  EXPECT_FALSE(parse_config(config, problems));
}

TEST(ModelSpec, GemmaSeesAllTokensInEverySixthLayer) {
  Problems problems;
  const auto model = read_model_spec("gemma3-1b", problems);
  ASSERT_TRUE(model);
  EXPECT_EQ(window_of_layer(*model, 4), 512);
  EXPECT_EQ(window_of_layer(*model, 5), 0);
  EXPECT_EQ(model->full_attention_layers.size(), 4U);
  EXPECT_TRUE(model->tied_embeddings);  // by its class: the file says nothing
}

TEST(ModelSpec, ATokenClassifierHasAValueHead) {
  nlohmann::json config = valid_config();
  config["architectures"] = {"Qwen2ForTokenClassification"};
  Problems problems;
  EXPECT_EQ(parse_config(config, problems)->head, ModelHead::value);
}

/// What transformers 5.17's classes do with every pair of tie_word_embeddings in the file's map and
/// in text_config (absent, false, true): their lm_head is the embedding, or is not.
TEST(ModelSpec, NestedFilesTieTheEmbeddingsWhereTheirClassesDo) {
  const std::vector<std::vector<bool>> outside{{0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
      either{{0, 0, 1}, {0, 0, 1}, {1, 1, 1}}, inside{{0, 0, 1}, {0, 0, 1}, {0, 0, 1}},
      by_default{{1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  for (const auto& [name, tied] :
       std::map<std::string, std::vector<std::vector<bool>>>{{"tiny-gemma3-vision", by_default},
                                                             {"tiny-qwen3-vl", outside},
                                                             {"tiny-qwen3-vl-moe", outside},
                                                             {"tiny-qwen3.5", outside},
                                                             {"tiny-qwen3.5-moe", outside},
                                                             {"tiny-glm4v", either},
                                                             {"tiny-glm4v-moe", either},
                                                             {"tiny-qwen2.5-vl", either},
                                                             {"tiny-llama4", inside}}) {
    std::ifstream in(fixtures() / name / "config.json");
    const auto saved = nlohmann::json::parse(in);
    for (std::size_t root = 0; root < 3; ++root) {
      for (std::size_t text = 0; text < 3; ++text) {
        nlohmann::json config = saved;
        const auto state = [](nlohmann::json& map, std::size_t what) {
          map.erase("tie_word_embeddings");
          if (what > 0) map["tie_word_embeddings"] = what == 2;
        };
        state(config, root);
        state(config["text_config"], text);
        Problems problems;
        const auto spec = parse_config(config, problems);
        ASSERT_TRUE(spec) << to_string(problems.at(0));
        EXPECT_EQ(spec->tied_embeddings, tied[root][text]) << name << " " << root << " " << text;
      }
    }
  }
}

/// torch.nn.Embedding(131, 64, padding_idx): -1 is row 130, -131 row 0, -132 and 131 are refused.
TEST(ModelSpec, ThePaddingTokenIsARowOfTheEmbedding) {
  const auto read = [](const nlohmann::json& pad, const char* type = "qwen2") {
    nlohmann::json config = valid_config();
    config["model_type"] = type;
    config["pad_token_id"] = pad;
    Problems problems;
    const auto spec = parse_config(config, problems);
    if (spec) return std::to_string(spec->pad_token.value_or(-1000));
    return problems.at(0).place + ": " + problems[0].expected;
  };
  EXPECT_EQ(read(nullptr), "-1000");
  EXPECT_EQ(read(130), "130");
  EXPECT_EQ(read(-1), "130");
  EXPECT_EQ(read(-131), "0");
  for (const int pad : {-132, 131}) {
    EXPECT_NE(read(pad).find("(/pad_token_id): null, or a token of the 131 of vocab_size"),
              std::string::npos)
        << read(pad);
  }
}

}  // namespace
}  // namespace tessera
