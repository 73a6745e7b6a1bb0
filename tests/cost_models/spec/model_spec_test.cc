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
#include "tests/cost_models/spec/model_fixtures.h"

namespace tessera {
namespace {

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

/// transformers 5.17: null is num_attention_heads where a class takes it, whatever its default is.
TEST(ModelSpec, NullKeyValueHeadsAreAsManyAsQueryHeads) {
  nlohmann::json config = valid();
  config["num_key_value_heads"] = nullptr;
  for (const auto& [type, name] : {std::pair{"qwen2", "Qwen2ForCausalLM"},
                                   {"qwen3", "Qwen3ForCausalLM"},
                                   {"llama", "LlamaForCausalLM"}}) {
    config["model_type"] = type;
    config["architectures"] = {name};
    Problems problems;
    const auto model = parse(config, problems);
    ASSERT_TRUE(model) << type << Error(ExitCode::bad_input, problems).what();
    EXPECT_EQ(model->kv_heads, 4) << type;
  }
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  Problems problems;
  EXPECT_FALSE(parse(config, problems).has_value());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].found, "null");
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

TEST(ModelSpec, ANumberBeyond64BitsHidesNoOtherProblem) {
  auto config = valid();
  config["hidden_size"] = 1e30;
  config["num_attention_heads"] = -4;
  std::string text = config.dump();
  text.replace(text.find("1e+30"), 5, "9223372036854775808");
  Problems problems;
  EXPECT_FALSE(parse_model_spec(text, "config.json", problems));
  std::string told;
  for (const Problem& problem : problems) told += to_string(problem) + "\n";
  EXPECT_NE(told.find("9223372036854775808, expected an integer of 64 bits"), told.npos) << told;
  EXPECT_NE(told.find("found -4"), told.npos) << told;
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
  const auto a = parse(flat, problems), b = parse(nested, problems);
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
  const auto without = parse(config, problems);
  config["head_dim"] = 24;
  const auto with = parse(config, problems);
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
    const auto alone = parse(config, problems);
    config[other] = stated;
    EXPECT_EQ(parse(config, problems), alone);
    EXPECT_TRUE(problems.empty());
    config[other] = stated + 1;
    EXPECT_FALSE(parse(config, problems));
    ASSERT_EQ(problems.size(), 1U);
    const std::string told = problems[0].place + " " + problems[0].found;
    for (const std::string& word : {std::string(name), std::string(other), std::to_string(stated),
                                    std::to_string(stated + 1)}) {
      EXPECT_NE(told.find(word), std::string::npos) << told;
    }
  }
}

TEST(ModelSpec, AnUnknownTypeIsRefusedWithTheClosestOneByName) {
  for (const auto& [type, closest] : std::map<std::string, std::string>{
           {"gemma4", "gemma2"}, {"nemotron_h", "nemotron"}, {"llama4", "llama"}, {"x", "gpt2"}}) {
    nlohmann::json config = valid();
    config["model_type"] = type;
    Problems problems;
    EXPECT_FALSE(parse(config, problems));
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].hint.find("'" + closest + "'"), std::string::npos) << problems[0].hint;
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
  EXPECT_EQ(parse(config, problems)->full_attention_layers, std::vector<std::int64_t>{1});
  config["layer_types"] = std::vector<std::string>(3, "linear_attention");
  EXPECT_FALSE(parse(config, problems));
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
      {"rope_scaling", {{"rope_type", "dynamic"}}, "rope_type"},
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

// Kinds of layers that no reader knows are named, whether a family has windows or not.
TEST(ModelSpec, LayersOfLinearAttentionAreRefusedByName) {
  for (const char* fixture :
       {"tiny-qwen2-moe", "tiny-mixtral", "tiny-gpt-oss", "tiny-deepseek-v3"}) {
    std::ifstream in(fixtures() / fixture / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    std::vector<std::string> types(config["num_hidden_layers"].get<std::size_t>(),
                                   "full_attention");
    types.front() = "linear_attention";
    config["layer_types"] = types;
    Problems problems;
    EXPECT_FALSE(parse(config, problems)) << fixture;
    ASSERT_EQ(problems.size(), 1U) << fixture;
    EXPECT_NE(problems[0].place.find("layer_types"), std::string::npos) << problems[0].place;
    EXPECT_EQ(problems[0].found, "'linear_attention'");
  }
}

TEST(ModelSpec, EveryMalformedPartOfAFamilyIsRefusedAtItsPlace) {
  struct Case {
    const char* fixture;
    Malformed malformed;
  };
  const nlohmann::json erase;
  const std::vector<Case> cases{
      {"tiny-mixtral", {"num_local_experts", erase, "num_local_experts"}},
      {"tiny-mixtral", {"num_local_experts", 0, "num_local_experts"}},
      {"tiny-mixtral", {"num_experts_per_tok", 7, "num_experts_per_tok"}},
      {"tiny-qwen2-moe", {"mlp_only_layers", {3}, "mlp_only_layers"}},
      {"tiny-qwen2-moe", {"mlp_only_layers", {0, 1, 2}, "num_experts"}},
      {"tiny-qwen2-moe", {"shared_expert_intermediate_size", erase, "shared_expert"}},
      {"tiny-qwen3-moe", {"decoder_sparse_step", 0, "decoder_sparse_step"}},
      {"tiny-qwen3-moe", {"moe_intermediate_size", "20", "moe_intermediate_size"}},
      {"tiny-deepseek-v2", {"n_group", 4, "n_group"}},
      {"tiny-deepseek-v2", {"mlp_bias", true, "mlp_bias"}},
      {"tiny-deepseek-v3", {"topk_group", 5, "topk_group"}},
      {"tiny-deepseek-v3", {"kv_lora_rank", erase, "kv_lora_rank"}},
      {"tiny-deepseek-v3", {"qk_rope_head_dim", 3, "qk_rope_head_dim"}},
      {"tiny-deepseek-v3", {"scoring_func", "softmax", "scoring_func"}},
      {"tiny-deepseek-v3", {"moe_layer_freq", 2, "moe_layer_freq"}},
      {"tiny-gpt2", {"n_head", 5, "n_embd"}},
      {"tiny-gpt2", {"activation_function", "relu", "activation_function"}},
      {"tiny-gpt-oss", {"layer_types", {"full_attention"}, "layer_types"}},
      {"tiny-nemotron", {"hidden_act", "silu", "hidden_act"}},
      {"tiny-qwen2.5-vl", {"vision_config", erase, "vision_config"}},
      {"tiny-qwen2.5-vl", {"vision_config", {{"depth", 2}}, "vision_config"}},
      {"tiny-qwen2.5-vl", {"text_config", 7, "text_config"}},
      {"deepseek-v3", {"quantization_config", {{"bits", 8}}, "quantization_config"}},
      {"deepseek-v3", {"num_hidden_layers", 1 << 20, "num_hidden_layers"}},
  };
  for (const auto& [fixture, malformed] : cases) {
    std::ifstream in(fixtures() / fixture / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    config[malformed.key] = malformed.value;
    if (malformed.value.is_null()) config.erase(malformed.key);
    SCOPED_TRACE(std::string(fixture) + " " + malformed.key);
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
