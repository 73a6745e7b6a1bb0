// Configurations that are refused: at which place, with which words, all problems at once.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/families.h"
#include "cost_models/spec/model_spec.h"
#include "tests/cost_models/spec/model_config.h"
#include "tests/cost_models/spec/model_fixtures.h"

namespace tessera {
namespace {

TEST(ModelSpec, ANumberBeyond64BitsHidesNoOtherProblem) {
  auto config = valid_config();
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

TEST(ModelSpec, AnUnknownTypeIsRefusedWithTheClosestOneByName) {
  for (const auto& [type, closest] :
       std::map<std::string, std::string>{{"gemma4", "gemma3"},
                                          {"deepseek_v5", "deepseek_v4"},
                                          {"llama5", "llama4"},
                                          {"kimi_linear", "kimi_k2"},
                                          {"kimi_k25", "kimi_k2"},
                                          {"mimo_v2_flash", "mimo"},
                                          {"lama", "llama"},
                                          {"qwen3_5_text", "qwen3_5"},
                                          {"qwen3_vl_text", "qwen3_vl"},
                                          {"qwen2_vl", "qwen2_5_vl"},
                                          {"qwen3_omni_moe", "qwen3_moe"},
                                          {"minimax_m3", "minimax_m2"},
                                          {"gpt_neox", "gpt2"}}) {
    nlohmann::json config = valid_config();
    config["model_type"] = type;
    Problems problems;
    EXPECT_FALSE(parse_config(config, problems));
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].hint.find("'" + closest + "'"), std::string::npos) << problems[0].hint;
  }
}

/// Published config.json of makers that no family here is of.
TEST(ModelSpec, AnUnknownTypeOfAnotherMakerIsRefusedWithWhatItsKeysAreLike) {
  const auto told = [](const std::string& type, const nlohmann::json& more) {
    nlohmann::json config = valid_config();
    config["model_type"] = type;
    config.update(more);
    Problems problems;
    EXPECT_FALSE(parse_config(config, problems));
    return problems.at(0).hint;
  };
  const auto facts = [&](const std::string& hint) {
    const std::string words = "closest by its keys is '";
    const std::size_t at = hint.find(words);
    EXPECT_NE(at, hint.npos) << hint;
    const std::string name = hint.substr(at + words.size());
    return facts_of(name.substr(0, name.find('\'')));
  };
  const FamilyFacts* experts =
      facts(told("dots1", {{"n_routed_experts", 128}, {"sliding_window", nullptr}}));
  ASSERT_NE(experts, nullptr);
  EXPECT_TRUE(experts->experts && !experts->latent_attention);
  const FamilyFacts* latent =
      facts(told("bailing_moe_v2", {{"n_routed_experts", 256}, {"kv_lora_rank", 512}}));
  ASSERT_NE(latent, nullptr);
  EXPECT_TRUE(latent->experts && latent->latent_attention);
  const FamilyFacts* tower = facts(
      told("internvl_chat", {{"vision_config", {{"depth", 1}}}, {"text_config", valid_config()}}));
  ASSERT_NE(tower, nullptr);
  EXPECT_TRUE(tower->vision != VisionTower::none && !tower->experts && !tower->linear_attention);
  const FamilyFacts* plain = facts(told("jais2", nlohmann::json::object()));
  ASSERT_NE(plain, nullptr);
  EXPECT_TRUE(!plain->experts && plain->vision == VisionTower::none && !plain->state_space);
}

/// The bits a weight are those of published folders: Kimi-K2-Thinking's 594 GB (1.014e12 elements
/// of experts, and 11e9 others in bf16), Qwen2.5-7B-Instruct-GPTQ-Int4's 5.57 GB (6.53e9 in layers,
/// 1.09e9 in bf16).
TEST(ModelSpec, WeightsOfFewBitsAreRefusedWithWhatOneTakes) {
  const std::map<std::string, nlohmann::json> stored{
      {"method compressed-tensors, 4 bits in groups of 32: 4.5 bits a weight with its scales",
       {{"quant_method", "compressed-tensors"},
        {"format", "pack-quantized"},
        {"config_groups",
         {{"group_0",
           {{"targets", {"Linear"}},
            {"weights",
             {{"num_bits", 4}, {"group_size", 32}, {"symmetric", true}, {"type", "int"}}}}}}}}},
      {"method gptq, 4 bits in groups of 128: 4.156 bits a weight with its scales",
       {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"sym", true}}},
      {"method awq, 4 bits in groups of 128: 4.156 bits a weight with its scales",
       {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"zero_point", true}}},
      {"method mxfp4", {{"quant_method", "mxfp4"}}},
      {"no quant_method, 8 bits", {{"bits", 8}}},
  };
  for (const auto& [found, value] : stored) {
    nlohmann::json config = valid_config();
    config["quantization_config"] = value;
    Problems problems;
    EXPECT_FALSE(parse_config(config, problems));
    ASSERT_EQ(problems.size(), 1U) << found;
    EXPECT_EQ(problems[0].found, found);
    const bool narrow = found.find("4 bits") != found.npos;
    EXPECT_EQ(problems[0].hint.find("dequantized") != std::string::npos, narrow) << found;
  }
  nlohmann::json config = valid_config();
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  Problems none;
  EXPECT_TRUE(parse_config(config, none));
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
    nlohmann::json config = valid_config();
    config[malformed.key] = malformed.value;
    SCOPED_TRACE(config.dump());
    Problems problems;
    EXPECT_FALSE(parse_config(config, problems));
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
    EXPECT_FALSE(parse_config(config, problems)) << fixture;
    ASSERT_EQ(problems.size(), 1U) << fixture;
    EXPECT_NE(problems[0].place.find("layer_types"), std::string::npos) << problems[0].place;
    EXPECT_EQ(problems[0].found, "'linear_attention'");
  }
}

struct FamilyCase {
  const char* fixture;
  Malformed malformed;
};

void expect_refused(const std::vector<FamilyCase>& cases) {
  for (const auto& [fixture, malformed] : cases) {
    std::ifstream in(fixtures() / fixture / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    config[malformed.key] = malformed.value;
    if (malformed.value.is_null()) config.erase(malformed.key);
    SCOPED_TRACE(std::string(fixture) + " " + malformed.key);
    Problems problems;
    EXPECT_FALSE(parse_config(config, problems));
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(problems[0].place.find(malformed.place), std::string::npos) << problems[0].place;
  }
}

TEST(ModelSpec, EveryMalformedPartOfAFamilyIsRefusedAtItsPlace) {
  const nlohmann::json erase;
  const std::vector<FamilyCase> cases{
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
      {"tiny-deepseek-v32", {"q_lora_rank", erase, "q_lora_rank"}},
      {"tiny-deepseek-v32", {"layer_types", {"full_attention"}, "layer_types"}},
      {"tiny-deepseek-v32", {"mlp_layer_types", {"dense", "sparse"}, "mlp_layer_types"}},
      {"tiny-glm-moe-dsa", {"indexer_types", {"shared", "full", "full"}, "indexer_types"}},
      {"tiny-glm-moe-dsa", {"indexer_types", {"full", "none", "full"}, "indexer_types"}},
      {"tiny-glm-moe-dsa", {"indexer_types", {"full", "full"}, "indexer_types"}},
      {"glm5", {"index_topk_pattern", "FFXS", "index_topk_pattern"}},
      {"glm5", {"index_n_heads", 0, "index_n_heads"}},
      {"tiny-minimax", {"layer_types", {"linear_attention"}, "layer_types"}},
      {"minimax-m1", {"attn_type_list", {0, 1, 2}, "attn_type_list"}},
      {"deepseek-v3", {"quantization_config", {{"bits", 8}}, "quantization_config"}},
      {"deepseek-v3", {"num_hidden_layers", 1 << 20, "num_hidden_layers"}},
  };
  expect_refused(cases);
}

TEST(ModelSpec, EveryMalformedPartOfCompressedAttentionIsRefusedAtItsPlace) {
  const nlohmann::json erase;
  expect_refused({
      {"tiny-deepseek-v4", {"q_lora_rank", erase, "q_lora_rank"}},
      {"tiny-deepseek-v4", {"num_key_value_heads", 2, "num_key_value_heads"}},
      {"tiny-deepseek-v4", {"layer_types", {"full_attention"}, "layer_types"}},
      {"tiny-deepseek-v4", {"o_groups", 3, "o_groups"}},
      {"tiny-deepseek-v4", {"mlp_layer_types", {"moe", "dense", "moe", "moe"}, "mlp_layer_types"}},
      {"tiny-deepseek-v4", {"scoring_func", "sigmoid", "scoring_func"}},
      {"tiny-deepseek-v4", {"qk_rope_head_dim", 3, "qk_rope_head_dim"}},
      {"deepseek-v4-flash", {"compress_ratios", {0, 4}, "compress_ratios"}},
      {"deepseek-v4-flash", {"compress_rate_csa", 8, "compress_ratios"}},
  });
}

// What a config.json nests beside a tower, and the tower's own.
TEST(ModelSpec, EveryMalformedPartOfANestedConfigIsRefusedAtItsPlace) {
  struct Case {
    const char *fixture, *within;
    Malformed malformed;
  };
  const nlohmann::json erase;
  const std::vector<Case> cases{
      {"tiny-llama4", "text_config", {"no_rope_layers", {1, 1}, "no_rope_layers"}},
      {"tiny-llama4", "text_config", {"no_rope_layers", {0, 1, 1, 1, 1}, "layer_types"}},
      {"tiny-llama4", "text_config", {"moe_layers", {5}, "moe_layers"}},
      {"tiny-llama4", "text_config", {"intermediate_size_mlp", erase, "intermediate_size_mlp"}},
      {"tiny-llama4", "vision_config", {"intermediate_size", 60, "intermediate_size"}},
      {"tiny-llama4", "vision_config", {"vision_output_dim", 32, "vision_output_dim"}},
      {"tiny-llama4", "vision_config", {"num_attention_heads", 3, "hidden_size"}},
      {"tiny-gemma3-vision", "vision_config", {"vision_use_head", true, "vision_use_head"}},
      {"tiny-gemma3-vision", "vision_config", {"num_hidden_layers", erase, "num_hidden_layers"}},
      {"tiny-gemma3-vision", "text_config", {"num_attention_heads", 0, "num_attention_heads"}},
  };
  for (const auto& [fixture, within, malformed] : cases) {
    std::ifstream in(fixtures() / fixture / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    nlohmann::json& part = config.at(within);
    part[malformed.key] = malformed.value;
    if (malformed.value.is_null()) part.erase(malformed.key);
    SCOPED_TRACE(std::string(fixture) + " " + malformed.key);
    Problems problems;
    EXPECT_FALSE(parse_config(config, problems));
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(problems[0].place.find(malformed.place), std::string::npos) << problems[0].place;
  }
}

TEST(ModelSpec, AllProblemsOfAConfigComeAtOnce) {
  nlohmann::json config = valid_config();
  config.erase("hidden_size");
  config["vocab_size"] = -1;
  Problems problems;
  EXPECT_FALSE(parse_config(config, problems));
  EXPECT_GE(problems.size(), 2u);
}

}  // namespace
}  // namespace tessera
