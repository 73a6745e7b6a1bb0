#include "cost_models/spec/model_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/spec_document.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

fs::path fixtures() {
  const char* folder = std::getenv("TESSERA_FIXTURES_DIR");
  return folder != nullptr ? fs::path(folder)
                           : fs::path(TESSERA_SOURCE_DIR) / "tests/fixtures/models";
}

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

/// What a saved checkpoint holds and what the table says it holds.
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
/// (its active parameters leave out the input embedding, as those of Qwen1.5-MoE do).
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
      {"mixtral-8x7b", 46700, 12900, 100},     {"mixtral-8x22b", 141000, 39000, 500},
      {"qwen1.5-moe-a2.7b", 14300, 2700, 100}, {"qwen2-57b-a14b", 57400, 14200, 300},
      {"qwen3-30b-a3b", 30500, 3300, 100},     {"qwen3-235b-a22b", 235000, 22000, 500},
      {"deepseek-v2-lite", 15700, 2400, 300},  {"deepseek-v2", 236000, 21000, 500},
      {"deepseek-v3", 671000, 37000, 700},     {"gpt-oss-20b", 20910, 3610, 600},
      {"gpt-oss-120b", 116830, 5130, 600},     {"nemotron-4-340b", 341000, 341000, 500},
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

/// "11.5B unique parameters, excluding the shared embedding and head": README_WEIGHTS.md of
/// deepseek-ai/DeepSeek-V3.
TEST(ModelSpec, TheMultiTokenPredictionModuleHasItsPublishedSize) {
  Problems problems;
  const auto model = read_model_spec("deepseek-v3", problems);
  ASSERT_TRUE(model);
  EXPECT_NEAR(mtp_parameter_count(*model) / 1e9, 11.5, 0.15);
  EXPECT_EQ(model->mtp_layers, 1);
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
  for (const auto& entry : fs::directory_iterator(fixtures())) {
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

// Parameters as the safetensors files of the published checkpoints count them (their cards at
// huggingface.co); tied embeddings once, DeepSeek-V3 without its MTP layer.
TEST(Presets, HaveThePublishedNumbersOfParameters) {
  const std::vector<std::pair<std::string, std::int64_t>> published{
      {"qwen2.5-0.5b", 494'032'768},
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
      {"qwen2.5-vl-3b", 3'754'622'976},
      {"qwen2.5-vl-7b", 8'292'166'656}};
  for (const auto& [name, count] : published) {
    Problems problems;
    const auto model = read_model_spec(name, problems);
    ASSERT_TRUE(model.has_value()) << Error(ExitCode::bad_input, problems).what();
    EXPECT_EQ(parameter_count(*model), count) << name;
  }
}

}  // namespace
}  // namespace tessera
