// Oracle: saved_tensors_hooks on transformers' own models (activation_oracle.py), in bytes.
#include "cost_models/transformers/saved_tensors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/families.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/transformers/fsdp_pass.h"
#include "tests/cost_models/spec/model_fixtures.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

struct Counted {
  std::string family;
  LayerKind kind = LayerKind::dense;
  ModelSpec model;
  Json kept, checkpointed;
};

Json counts() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) +
                     "/tests/fixtures/activations/transformers.json");
  return Json::parse(file);
}

LayerKind kind_named(const std::string& name) {
  if (name == "linear dense") return LayerKind::linear_dense;
  if (name == "shared choice dense") return LayerKind::shared_choice_dense;
  if (name == "shared choice sparse") return LayerKind::shared_choice_sparse;
  if (name == "window sparse") return LayerKind::window_sparse;
  if (name == "chosen sparse") return LayerKind::chosen_sparse;
  if (name == "all sparse") return LayerKind::all_sparse;
  if (name == "window hash") return LayerKind::window_hash;
  if (name == "chosen hash") return LayerKind::chosen_hash;
  if (name == "all hash") return LayerKind::all_hash;
  if (name == "linear sparse") return LayerKind::linear_sparse;
  if (name == "state space alone") return LayerKind::state_space_alone;
  if (name == "attention alone") return LayerKind::attention_alone;
  if (name == "mlp alone") return LayerKind::mlp_alone;
  if (name == "experts alone") return LayerKind::experts_alone;
  return name == "sparse" ? LayerKind::sparse : LayerKind::dense;
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
    all.push_back({each.at("family"), kind_named(each.at("kind")), *model, each.at("kept"),
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
    SCOPED_TRACE(each.family + " kind " + std::to_string(static_cast<int>(each.kind)) +
                 (is_sparse(each.kind) ? " sparse h " : " dense h ") +
                 std::to_string(each.model.hidden));
    const std::int64_t element = 2;
    for (const Json& counted : each.kept) {
      EXPECT_EQ(bytes_of(saved_by_layer(each.model, each.kind, {}), counted),
                counted.at("layer").get<std::int64_t>());
      if (is_linear(each.kind)) continue;      // a model without rotary tables
      if (shares_choice(each.kind)) continue;  // behind another layer, which keeps the choice
      // The last norm's output counts with the head, which reads it.
      const std::int64_t tokens = counted.at("tokens").get<std::int64_t>();
      EXPECT_EQ(bytes_of(saved_outside_layers(each.model, {}), counted),
                counted.at("ends").get<std::int64_t>() + tokens * element * each.model.hidden);
      // Logits (in fp32 where they are cast, and their tanh where they are capped), a log-sum-exp
      // in fp32 and a label.
      const ModuleFacts& modules = facts_of(each.model.family).modules;
      const std::int64_t logit = modules.wide_logits     ? 4
                                 : modules.capped_logits ? 2 * element
                                                         : element;
      EXPECT_EQ(tokens * (element * each.model.hidden + logit * each.model.vocab + 4 + 8),
                counted.at("head").get<std::int64_t>());
    }
    for (const Json& counted : each.checkpointed) {
      EXPECT_EQ(bytes_of(saved_by_checkpoint(each.model, {}), counted),
                counted.at("layer").get<std::int64_t>());
    }
  }
  EXPECT_EQ(families.size(), 42U);
}

// Oracle: the same hooks on models that peft has given adapters of every linear weight.
TEST(SavedTensors, EqualWhatAutogradKeepsBesideAdapters) {
  std::set<std::string> families;
  const Json fixture = counts();
  for (const Json& each : fixture.at("adapters")) {
    families.insert(each.at("family"));
    Problems problems;
    const auto model = parse_model_spec(each.at("config").dump(), "config.json", problems);
    ASSERT_TRUE(model);
    const ModuleRun run{.adapter_rank = each.at("rank").get<std::int64_t>()};
    for (const Json& counted : each.at("kept")) {
      EXPECT_EQ(bytes_of(saved_by_layer(*model, LayerKind::dense, run), counted),
                counted.at("layer").get<std::int64_t>())
          << each.at("family") << " rank " << run.adapter_rank;
    }
  }
  EXPECT_EQ(families.size(), 3U);
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
    const LayerKind kind = sparse ? LayerKind::sparse : LayerKind::dense;
    const auto stream = 2.0 * static_cast<double>(model->hidden);
    const auto forward = static_cast<double>(forward_transients(*model, kind, {}));
    EXPECT_NEAR(forward / each.at("forward").get<double>(), 1, 0.03);
    const SavedBytes layer = saved_by_layer(*model, kind, {});
    const double backward = 2 * stream + static_cast<double>(layer.per_token) +
                            static_cast<double>(backward_transients(*model, kind, {}));
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

ModelSpec published(const std::string& name) {
  Problems problems;
  const auto model = read_model_spec(fixtures() / name, problems);
  EXPECT_TRUE(model) << name;
  return model.value_or(ModelSpec{});
}

// Two layers with checkpointing: the logits are their own gradient, the head's is new. Neither
// shards nor what gathers them are counted.
TEST(TrainingMoments, HaveTheLossThatLiveStoragesHave) {
  const Json fixture = counts();
  for (const Json& each : fixture.at("losses")) {
    const ModelSpec model = published(each.at("model").get<std::string>());
    const double tokens = 8192;
    const auto logits = static_cast<std::int64_t>(2 * tokens) * model.vocab;
    const auto moments =
        training_moments(model, {}, {.head = model.vocab * model.hidden},
                         {.tokens = tokens, .layers = {2}, .logits = logits, .checkpointed = true});
    const double gathered = 2.0 * static_cast<double>(model.vocab * model.hidden);
    EXPECT_NEAR((moments[0].total() - gathered) / tokens / each.at("most").get<double>(), 1, 1e-3)
        << each.at("model");
  }
}

// verl 0.9.1 on 4 GPUs, FSDP2, gradient checkpointing, dynamic batches of 16,384 tokens reported
// 38.7 GiB allocated at most (perf/max_memory_allocated_gb, which divides by 1024^3).
TEST(TrainingMoments, AreWithinSixPercentOfWhatVerlMeasured) {
  const ModelSpec model = published("qwen2.5-7b");
  const std::int64_t h = model.hidden, parameters = 7'615'616'512, tokens = 16384;
  const std::int64_t layer =
      2 * h * h + 2 * h * 512 + 3 * h * model.ffn + 3 * h + 1024;  // biases, norms
  const auto moments = training_moments(
      model, {}, {.layer = layer, .head = model.vocab * h},
      {.tokens = 16384, .layers = {28}, .logits = 2 * tokens * model.vocab, .checkpointed = true});
  double most = 0;
  for (const PassBytes& moment : moments) most = std::max(most, moment.total());
  // fp32 parameters, gradients and Adam's two moments over four ranks.
  const double gib = (most + 16.0 * static_cast<double>(parameters) / 4) / (1 << 30);
  EXPECT_NEAR(gib, 38.7, 0.06 * 38.7);
  // Without checkpointing the last layer's backward pass begins beside everything.
  const auto whole =
      training_moments(model, {}, {.layer = layer, .head = model.vocab * h},
                       {.tokens = 16384, .layers = {28}, .logits = 2 * tokens * model.vocab});
  EXPECT_GT(whole[0].activations, 28.0 * 225'400 * 16384);
}

TEST(TrainingMoments, OfFrozenOrWholeParametersGatherAndReduceLess) {
  ModelSpec model = published("qwen2.5-7b");
  const GatheredParts parts{.layer = 1000, .head = 5000};
  GatheredParts frozen = parts;
  frozen.trained = false;
  const PassLoad load{.tokens = 1, .layers = {28}};
  const auto at = [&](const GatheredParts& gathered, Moment moment) {
    return training_moments(model, {}, gathered, load)[static_cast<std::size_t>(moment)].gathered;
  };
  EXPECT_EQ(at(parts, Moment::loss), 2 * (1000 + 2 * 5000));
  EXPECT_EQ(at(frozen, Moment::loss), 2 * (1000 + 5000));
  EXPECT_EQ(at(parts, Moment::head_reduced), 2 * (1000 + 5000) + 4 * 5000);
  EXPECT_NEAR(at(parts, Moment::last_layer), 2 * (2 + 1.0 / 3) * 1000 + 4 * 5000, 1e-6);
  EXPECT_NEAR(at(parts, Moment::first_layer), 2 * (2 + 1.0 / 3) * 1000 + 4 * 1000, 1e-6);
  EXPECT_EQ(at(frozen, Moment::first_layer), 2 * 2 * 1000);
  EXPECT_EQ(at({}, Moment::last_layer), 0);
  model.tied_embeddings = true;  // gathered, with its gradient, until the embedding's is added
  EXPECT_NEAR(at(parts, Moment::first_layer), 2 * (2 + 1.0 / 3) * 1000 + 4 * 1000 + 4 * 5000, 1e-6);
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
  EXPECT_EQ(saved_by_layer(model, LayerKind::dense, {}).per_token, 225'400);
  // Two ranks by Ulysses have four key-value heads still; eight need eight.
  const std::int64_t head = 128, output = head * 28 * 2;
  EXPECT_EQ(saved_by_layer(model, LayerKind::dense, {.ulysses = 2}).per_token, 225'400 + output);
  EXPECT_EQ(saved_by_layer(model, LayerKind::dense, {.ulysses = 8}).per_token,
            225'400 + output + head * (8 - 4) * 2 * 2);
  model.family = ModelFamily::qwen3;
  model.qk_norm = true;
  model.hidden = 4096;
  model.query_heads = 32;
  model.kv_heads = 8;
  model.ffn = 12288;
  EXPECT_EQ(saved_by_layer(model, LayerKind::dense, {}).per_token, 215'336);
}

}  // namespace
}  // namespace tessera
