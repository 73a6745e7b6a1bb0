// Oracle: what torch's allocator gives out while its FSDP runs a small Qwen2 of transformers
// (tests/cost_models/fsdp_root_oracle.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/transformers/fsdp_pass.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

Json counted() {
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/activations/fsdp_root.json");
  return Json::parse(in);
}

struct Case {
  ModelSpec model;
  GatheredParts parts;
  PassLoad load;
  double shards_of_layers = 0, shards_of_ends = 0;  // bytes of their gradients, in fp32

  double at(Moment moment) const {
    return training_moments(model, {}, parts, load)[static_cast<std::size_t>(moment)].total();
  }
};

Case case_of(const Json& fixture, const Json& each) {
  Case made;
  ModelSpec& model = made.model;
  model.family = ModelFamily::qwen2;
  model.hidden = fixture.at("hidden_size");
  model.ffn = fixture.at("intermediate_size");
  model.query_heads = model.kv_heads = fixture.at("num_attention_heads");
  model.head_dim = model.hidden / model.query_heads;
  model.vocab = fixture.at("vocab_size");
  model.layers = fixture.at("num_hidden_layers");
  model.tied_embeddings = each.at("ends") == "tied";
  const std::int64_t ranks = each.at("ranks"), elements = each.at("elements");
  GatheredParts& parts = made.parts;
  parts.layer = each.at("layer");
  if (each.at("ends") != "value") parts.head = model.vocab * model.hidden;
  const std::int64_t ends = elements - model.layers * parts.layer;
  if (each.at("fsdp") == 1) {
    parts.root = ends;
    parts.padded_root = ends % ranks != 0;
  }
  const std::int64_t tokens = fixture.at("tokens");
  made.load = {.tokens = static_cast<double>(tokens),
               .layers = {model.layers},
               .logits = parts.head > 0 ? 4 * tokens * model.vocab : 0};
  made.shards_of_layers = 4.0 * static_cast<double>(elements - ends) / static_cast<double>(ranks);
  made.shards_of_ends = 4.0 * static_cast<double>(ends) / static_cast<double>(ranks);
  return made;
}

TEST(Fsdp, HoldsOfItsRootWhatTorchGivesOut) {
  const Json fixture = counted();
  int cases = 0;
  for (const Json& each : fixture.at("cases")) {
    SCOPED_TRACE(each.dump());
    const Case made = case_of(fixture, each);
    const double layer = 2.0 * static_cast<double>(made.parts.layer);
    // The head's moment ends where the last layer has been gathered, and the next.
    const double loss = std::max(made.at(Moment::loss), made.at(Moment::last_layer));
    EXPECT_NEAR(loss / each.at("loss").get<double>(), 1, 0.03);
    const double layers = made.at(Moment::first_layer) + made.shards_of_layers;
    EXPECT_GE(layers / each.at("layers").get<double>(), 0.99);
    EXPECT_LE(layers, each.at("layers").get<double>() + made.shards_of_layers + layer);
    // The sum of tied gradients comes before the shard of their own.
    double end = made.at(Moment::root) + made.shards_of_layers;
    if (!made.model.tied_embeddings) end += made.shards_of_ends;
    EXPECT_NEAR(end / each.at("end").get<double>(), 1, 0.01);
    ++cases;
  }
  EXPECT_EQ(cases, 8);
}

// The CPU gathers a layer where it runs, a device the next one beside it. FSDP2's buffer of its
// first gather, which the first layer's copy frees, is left out.
TEST(Fsdp, ScoresBesideItsRoot) {
  const Json fixture = counted();
  for (const Json& each : fixture.at("cases")) {
    if (each.at("fsdp") == 2 || each.at("ranks") == 2) continue;  // two ranks: half is its own cast
    SCOPED_TRACE(each.dump());
    const Case made = case_of(fixture, each);
    const double next = 2.0 * static_cast<double>(made.parts.layer);
    const PassBytes bytes = scoring_moment(made.model, {}, made.parts, made.load);
    EXPECT_NEAR((bytes.total() - next) / each.at("score").get<double>(), 1, 0.03);
  }
}

// 7B: one more 16-bit end at the loss than under FSDP2, six bytes an element of both at the end.
TEST(Fsdp, GathersTheEmbeddingThroughAPassOfItsFirstVersion) {
  ModelSpec model;
  model.vocab = 152064;
  model.hidden = 3584;
  const std::int64_t end = model.vocab * model.hidden;
  GatheredParts second{.layer = 1000, .head = end}, first = second;
  first.root = 2 * end;
  const PassLoad load{.tokens = 1, .layers = {28}};
  const auto at = [&](const GatheredParts& parts, Moment moment) {
    return training_moments(model, {}, parts, load)[static_cast<std::size_t>(moment)].gathered;
  };
  const auto bytes = static_cast<double>(end);
  EXPECT_EQ(at(first, Moment::loss) - at(second, Moment::loss), 2 * bytes);
  EXPECT_EQ(at(first, Moment::root), 12 * bytes);
  EXPECT_EQ(at(second, Moment::root), 0);
  first.padded_root = true;
  EXPECT_EQ(at(first, Moment::root), 20 * bytes);
  first.trained = false;  // beside adapters
  EXPECT_EQ(at(first, Moment::root), 4 * bytes);
}

}  // namespace
}  // namespace tessera
