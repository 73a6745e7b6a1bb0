// Oracle: saved_tensors_hooks on transformers' own models (activation_oracle.py), in bytes.
#include "cost_models/transformers/saved_tensors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cost_models/model_fixtures.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

struct Counted {
  std::string family;
  bool sparse = false;
  ModelSpec model;
  Json kept, checkpointed;
};

Json counts() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) +
                     "/tests/fixtures/activations/transformers.json");
  return Json::parse(file);
}

std::vector<Counted> counted_models() {
  const Json fixture = counts();
  std::vector<Counted> all;
  for (const Json& each : fixture.at("cases")) {
    Problems problems;
    auto model = parse_model_spec(each.at("config").dump(), "config.json", problems);
    EXPECT_TRUE(model) << each.at("family") << ": "
                       << (problems.empty() ? "" : problems.front().expected);
    if (!model) continue;
    all.push_back({each.at("family"), each.at("kind") == "sparse", *model, each.at("kept"),
                   each.at("checkpointed")});
  }
  return all;
}

std::int64_t bytes_of(const SavedBytes& bytes, const Json& counted) {
  return bytes.per_token * counted.at("tokens").get<std::int64_t>() + bytes.once;
}

TEST(SavedTensors, EqualWhatAutogradKeepsForEveryFamily) {
  std::set<std::string> families;
  for (const Counted& each : counted_models()) {
    families.insert(each.family);
    SCOPED_TRACE(each.family + (each.sparse ? " sparse h " : " dense h ") +
                 std::to_string(each.model.hidden));
    const std::int64_t element = 2;
    for (const Json& counted : each.kept) {
      EXPECT_EQ(bytes_of(saved_by_layer(each.model, each.sparse, {}), counted),
                counted.at("layer").get<std::int64_t>());
      // The last norm's output counts with the head, which reads it.
      const std::int64_t tokens = counted.at("tokens").get<std::int64_t>();
      EXPECT_EQ(bytes_of(saved_outside_layers(each.model, {}), counted),
                counted.at("ends").get<std::int64_t>() + tokens * element * each.model.hidden);
      // Logits, a log-sum-exp in fp32 and a label.
      EXPECT_EQ(tokens * (element * (each.model.hidden + each.model.vocab) + 4 + 8),
                counted.at("head").get<std::int64_t>());
    }
    for (const Json& counted : each.checkpointed) {
      EXPECT_EQ(bytes_of(saved_by_checkpoint(each.model, {}), counted),
                counted.at("layer").get<std::int64_t>());
    }
  }
  EXPECT_EQ(families.size(), 12U);
}

// Live storages of two layers, small vocabulary, 8,192 tokens.
TEST(Transients, CoverWhatLivesAtMostInAPass) {
  const Json fixture = counts();
  for (const Json& each : fixture.at("peaks")) {
    SCOPED_TRACE(each.at("model").get<std::string>());
    Problems problems;
    const auto model = read_model_spec(fixtures() / each.at("model").get<std::string>(), problems);
    ASSERT_TRUE(model);
    const bool sparse = model->moe.has_value();
    const auto stream = 2.0 * static_cast<double>(model->hidden);
    const auto forward = static_cast<double>(forward_transients(*model, sparse, {}));
    EXPECT_NEAR(forward / each.at("forward").get<double>(), 1, 0.03);
    const SavedBytes layer = saved_by_layer(*model, sparse, {});
    const double backward = 2 * stream + static_cast<double>(layer.per_token) +
                            static_cast<double>(backward_transients(*model, sparse, {}));
    const auto counted = each.at("backward").get<double>();
    if (!sparse) {
      EXPECT_NEAR(backward / counted, 1, 0.01);
      continue;
    }
    // Gradients of the experts' weights are there too, of one projection at least.
    const double gradients = 2.0 * static_cast<double>(model->moe->experts) * 3 *
                             static_cast<double>(model->moe->expert_ffn * model->hidden) / 8192;
    EXPECT_GE(backward + gradients, counted);
    EXPECT_LE(backward, counted * 1.16);
  }
}

// The published count of a layer (transformers 5.23, bytes per token).
TEST(SavedTensors, EqualTheCountOfQwenAndLlamaAtTheirOwnSizes) {
  ModelSpec model;
  model.family = ModelFamily::qwen2;
  model.hidden = 3584;
  model.query_heads = 28;
  model.kv_heads = 4;
  model.head_dim = 128;
  model.ffn = 18944;
  EXPECT_EQ(saved_by_layer(model, false, {}).per_token, 225'400);
  // Two ranks by Ulysses have four key-value heads still; eight need eight.
  const std::int64_t output = 2 * 28 * 128;
  EXPECT_EQ(saved_by_layer(model, false, {.ulysses = 2}).per_token, 225'400 + output);
  EXPECT_EQ(saved_by_layer(model, false, {.ulysses = 8}).per_token,
            225'400 + output + 2 * 2 * (8 - 4) * 128);
  model.family = ModelFamily::qwen3;
  model.qk_norm = true;
  model.hidden = 4096;
  model.query_heads = 32;
  model.kv_heads = 8;
  model.ffn = 12288;
  EXPECT_EQ(saved_by_layer(model, false, {}).per_token, 215'336);
}

}  // namespace
}  // namespace tessera
