// Oracle: saved_tensors_hooks on transformers' own models (activation_oracle.py), in bytes.
#include "cost_models/transformers/saved_tensors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace tessera {
namespace {

using Json = nlohmann::json;

struct Counted {
  std::string family;
  bool sparse = false;
  ModelSpec model;
  Json kept, checkpointed;
};

std::vector<Counted> counted_models() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) +
                     "/tests/fixtures/activations/transformers.json");
  const Json fixture = Json::parse(file);
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
