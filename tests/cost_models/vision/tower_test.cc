// Oracle: vision towers of transformers' own models (vision_oracle.py).
#include "cost_models/vision/tower.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

struct Case {
  std::string name;
  ModelSpec model;
  double tokens = 0;
  Json counted;
};

std::vector<Case> cases() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/vision/transformers.json");
  std::vector<Case> all;
  const Json fixture = Json::parse(file);
  for (const Json& each : fixture.at("cases")) {
    Problems problems;
    auto model = parse_model_spec(each.at("config").dump(), "config.json", problems);
    EXPECT_TRUE(model) << each.at("name") << Error(ExitCode::bad_input, problems).what();
    if (model) all.push_back({each.at("name"), *std::move(model), each.at("tokens"), each});
  }
  return all;
}

ModelSpec preset(const char* name) {
  Problems problems;
  return read_model_spec(name, problems).value_or(ModelSpec{});
}

Workload with_images(double per_prompt, std::int64_t tokens) {
  Workload workload;
  workload.prompt_tokens = 4096;
  workload.images = {per_prompt, tokens};
  return workload;
}

TEST(Tower, OperationsAreThoseOfTransformersModules) {
  std::set<std::string> names;
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    names.insert(each.name);
    EXPECT_NEAR(tower_flops(each.model, each.tokens) / each.counted.at("flops").get<double>(), 1,
                0.03);
  }
  EXPECT_EQ(names.size(), 6U);
}

// Autocast's fp32 norms, which the oracle's CPU has none of, are among what is said. With
// checkpointing one block's tensors exist besides, in its backward pass.
TEST(Tower, WhatIsKeptIsAboutWhatTransformersModulesKeep) {
  EngineTraits traits;
  traits.kernels.account = ActivationAccount::transformers;
  traits.kernels.flash_attention = true;
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const auto rank = tower_rank(each.model, DType::bf16, traits);
    ASSERT_TRUE(rank);
    const auto said = [&](Recompute recompute) {
      const MemoryUse use = tower_training_memory(*rank, {1, each.tokens}, recompute, 1);
      return static_cast<double>(use.activations.value);
    };
    const double kept = said(Recompute::none), counted = each.counted.at("saved").get<double>();
    EXPECT_GT(kept / counted, 0.93);
    EXPECT_LT(kept / counted, 1.35);
    const double inputs = each.counted.at("checkpointed").get<double>();
    const double block = (kept - inputs) / static_cast<double>(each.model.vision->layers);
    EXPECT_GT(said(Recompute::full), inputs);
    EXPECT_LT(said(Recompute::full), 1.2 * (inputs + 1.25 * block));
  }
}

// By hand: Qwen2.5-VL-7B's tower, 32 layers of 1,280, windows of 64 patches in 28 of them.
TEST(Tower, OperationsOfAnImageByHand) {
  const double patches = 4 * 1196.0, h = 1280, f = 3420;
  const double blocks = 32 * patches * 2 * (4 * h * h + 3 * h * f);
  const double attention = patches * 4 * h * (4 * patches + 28 * 64);
  const double ends = 2 * (patches * h * 3 * 2 * 14 * 14 + 1196.0 * (5120 * 5120 + 3584 * 5120));
  EXPECT_NEAR(tower_flops(preset("qwen2.5-vl-7b"), 1196) / (blocks + attention + ends), 1, 1e-12);
}

TEST(Tower, TimesGrowWithImagesAndAreNoneWithoutThem) {
  Problems problems;
  const auto calibration = find_calibration("h200", problems);
  ASSERT_TRUE(calibration);
  const auto rank = tower_rank(preset("qwen3-vl-8b"), DType::bf16, {});
  ASSERT_TRUE(rank);
  EXPECT_FALSE(tower_rank(preset("qwen3-8b"), DType::bf16, {}));
  const auto forward = [&](double images, double tokens) {
    return tower_forward(*rank, {images, tokens}, *calibration).device.value;
  };
  EXPECT_EQ(forward(0, 1024), 0);
  EXPECT_NEAR(forward(64, 1024) / forward(16, 1024), 4, 0.2);
  EXPECT_GT(forward(16, 2048), 2 * forward(16, 1024)) << "attention grows by the square";
  const double back = tower_backward(*rank, {16, 1024}, Recompute::none, *calibration).device.value;
  EXPECT_GT(back, 1.7 * forward(16, 1024));
  EXPECT_GT(tower_backward(*rank, {16, 1024}, Recompute::full, *calibration).device.value,
            back + 0.9 * forward(16, 1024));
  // No faster than the GPU's data sheet says (989.5 TFLOP/s), no slower than a third of it.
  const double flops = 16 * tower_flops(preset("qwen3-vl-8b"), 1024);
  EXPECT_GT(forward(16, 1024), flops / 989.5e12);
  EXPECT_LT(forward(16, 1024), 3 * flops / 989.5e12);
}

TEST(Tower, AreAmongTheOperationsOfASequence) {
  const ModelSpec model = preset("qwen2.5-vl-7b");
  const double text = forward_flops_per_sequence(model, with_images(0, 0), 2048);
  EXPECT_EQ(text, 2048 * forward_flops_per_token(model, 2048));
  EXPECT_DOUBLE_EQ(forward_flops_per_sequence(model, with_images(1.5, 1024), 2048),
                   text + 1.5 * tower_flops(model, 1024));
}

}  // namespace
}  // namespace tessera
