// Oracle: a layer of multi-token prediction as Megatron-Core has it, in torch
// (prediction_oracle.py).
#include "cost_models/prediction/mtp.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/memory.h"
#include "cost_models/spec/layer_kind.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

struct Case {
  ModelSpec model;
  double tokens = 0;
  Json counted;
};

ModelSpec with(ModelSpec model, MtpUse use) {
  model.mtp = use;
  return model;
}

std::vector<Case> cases() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/prediction/mtp.json");
  std::vector<Case> all;
  const Json fixture = Json::parse(file);
  for (const Json& each : fixture.at("cases")) {
    Problems problems;
    const auto model = parse_model_spec(each.at("config").dump(), "config.json", problems);
    EXPECT_TRUE(model) << Error(ExitCode::bad_input, problems).what();
    if (model) all.push_back({*model, each.at("tokens"), each});
  }
  EXPECT_EQ(all.size(), 2U);
  return all;
}

ModelSpec preset(const char* name) {
  Problems problems;
  return read_model_spec(name, problems).value_or(ModelSpec{});
}

TEST(MultiTokenPrediction, HeldLayersHaveTheModulesParameters) {
  for (const Case& each : cases()) {
    const auto all = [&](MtpUse use) { return parameter_table(with(each.model, use)).elements(); };
    const auto counted = each.counted.at("parameters").get<std::int64_t>();
    EXPECT_EQ(all(MtpUse::held) - all(MtpUse::left_out), counted);
    EXPECT_EQ(mtp_parameter_count(each.model), counted);
    EXPECT_EQ(parameter_count(with(each.model, MtpUse::trained)), all(MtpUse::trained));
  }
}

// The published files of these have them (checkpoint_tensors_test.cc).
TEST(MultiTokenPrediction, TheTableOfEveryPresetHasWhatIsCounted) {
  for (const char* const name :
       {"deepseek-v3", "deepseek-v3.2", "glm4.5-air", "glm5.2", "mimo-7b", "qwen3-next-80b-a3b",
        "qwen3.5-35b-a3b", "deepseek-v4-flash", "nemotron3-super-120b-a12b"}) {
    const ModelSpec model = preset(name);
    ASSERT_GT(model.mtp_layers, 0) << name;
    const ModelSpec held = with(model, MtpUse::held);
    EXPECT_EQ(parameter_table(held).elements() - parameter_table(model).elements(),
              mtp_parameter_count(model))
        << name;
    EXPECT_EQ(parameter_count(held), parameter_table(held).elements()) << name;
  }
}

TEST(MultiTokenPrediction, ProductsAreTheModules) {
  for (const Case& each : cases()) {
    const double further = forward_flops_per_token(with(each.model, MtpUse::trained), each.tokens) -
                           forward_flops_per_token(each.model, each.tokens);
    EXPECT_NEAR(each.tokens * further / each.counted.at("forward").get<double>(), 1, 0.01);
    EXPECT_NEAR(2 * each.tokens * further / each.counted.at("backward").get<double>(), 1, 0.01);
    EXPECT_EQ(forward_flops_per_token(with(each.model, MtpUse::held), each.tokens),
              forward_flops_per_token(each.model, each.tokens));
  }
}

MemoryUse training(const ModelSpec& model, Recompute recompute, bool last = true) {
  RankModel rank{{}, model, DType::bf16};
  rank.traits.kernels.flash_attention = true;
  return training_memory(rank, {.last = last, .tokens = 96}, recompute);
}

// Beside the transformer layer, which run_layers counts as the model's own are.
TEST(MultiTokenPrediction, WhatIsKeptBesideTheLayerIsWhatTheModuleKeeps) {
  for (const Case& each : cases()) {
    const auto further = [&](MtpUse use, auto MemoryUse::*bytes) {
      return static_cast<double>((training(with(each.model, use), Recompute::none).*bytes -
                                  training(each.model, Recompute::none).*bytes)
                                     .value);
    };
    EXPECT_NEAR(
        further(MtpUse::trained, &MemoryUse::activations) / each.counted.at("kept").get<double>(),
        1, 0.03);
    EXPECT_NEAR(
        further(MtpUse::trained, &MemoryUse::logits) / each.counted.at("logits").get<double>(), 1,
        0.03);
    EXPECT_EQ(further(MtpUse::held, &MemoryUse::activations), 0);
    EXPECT_EQ(training(with(each.model, MtpUse::trained), Recompute::none, false),
              training(each.model, Recompute::none, false));
  }
}

TEST(MultiTokenPrediction, TheLastChunkRunsItsLayers) {
  const ModelSpec model = with(preset("deepseek-v3"), MtpUse::trained);
  const auto sparse = static_cast<std::size_t>(LayerKind::sparse);
  EXPECT_EQ(run_layers(model, {50, 61}, true)[sparse], 12);
  EXPECT_EQ(run_layers(model, {40, 50}, false)[sparse], 10);
  EXPECT_EQ(run_layers(with(model, MtpUse::held), {50, 61}, true)[sparse], 11);
}

// Its experts are dealt as the layers' are; the last stage has the embedding, too.
TEST(MultiTokenPrediction, RanksOfTheLastStageHoldTheirParts) {
  const ModelSpec model = with(cases().front().model, MtpUse::trained);
  const ParameterTable table = parameter_table(model),
                       without = parameter_table(cases().front().model);
  ParallelLayout layout{{.tp = 2, .pp = 2, .dp = 2, .ep = 4, .etp = 1}};
  layout.stages = even_stages(model.layers, 2);
  const ShardElements shards = shard_elements(table, 2, 4, 1),
                      plain = shard_elements(without, 2, 4, 1);
  for (int tp = 0; tp < 2; ++tp) {
    const Elements first = stage_parts(shards, layout, 0, tp),
                   last = stage_parts(shards, layout, 1, tp);
    EXPECT_EQ(first, stage_parts(plain, layout, 0, tp));
    const std::int64_t embedding = model.vocab * model.hidden / 2;
    const Elements before = stage_parts(plain, layout, 1, tp);
    EXPECT_EQ(last.expert - before.expert, 2 * expert_parameter_count(model));
    std::int64_t held = 0;
    for (const Parameter& row : table.rows) {
      if (const auto box = compute_box(row, layout, {.tp = tp, .pp = 1})) held += volume(*box);
    }
    EXPECT_EQ(last.total(), held);
    EXPECT_GT(last.dense - before.dense, embedding);
  }
}

}  // namespace
}  // namespace tessera
