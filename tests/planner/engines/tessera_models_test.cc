// Which models Tessera's own executor is not planned for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/plan/model_source.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

// transformers takes one set of factors for batches within the original positions and another for
// longer ones (modeling_rope_utils.py, longrope_frequency_update).
TEST(TesseraModels, RefuseLongropeOfOwnEngineAlone) {
  Problems problems;
  ModelSpec model = tiny_model();
  model.rope.kind = RopeScalingKind::yarn;
  refuse_model(engine_named("tessera"), {.spec = model}, "config.json", "/rope_parameters",
               problems);
  EXPECT_TRUE(problems.empty());
  model.rope.kind = RopeScalingKind::longrope;
  refuse_model(engine_named("verl"), {.spec = model}, "config.json", "/rope_parameters", problems);
  EXPECT_TRUE(problems.empty());
  for (const char* engine : {"tessera", "tessera+invariant", "tessera+vllm"}) {
    problems.clear();
    refuse_model(engine_named(engine), {.spec = model}, "config.json", "/rope_parameters",
                 problems);
    ASSERT_EQ(problems.size(), 1) << engine;
    EXPECT_EQ(problems[0].found.find("longrope scaling"), 0) << problems[0].found;
  }
}

// The executor's reader of safetensors has no fp8, and its passes no dropout, which transformers'
// classes have while they train (nn.functional.dropout behind the softmax).
TEST(TesseraModels, RefuseStoredWeightsAndDropoutOfOwnEngineAlone) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "unlike-executor";
  std::filesystem::create_directories(folder);
  const auto refused = [&](const char* engine, const std::string& more) {
    std::ofstream(folder / "config.json") << R"({"model_type": "qwen3_moe")" << more << "}";
    Problems problems;
    refuse_model(engine_named(engine), {.spec = tiny_model(), .path = folder}, "m", "", problems);
    return problems.empty() ? std::string() : problems[0].found;
  };
  const std::string fp8 = R"(, "quantization_config": {"quant_method": "fp8"})";
  for (const char* engine : {"tessera", "tessera+invariant", "tessera+vllm"}) {
    EXPECT_EQ(refused(engine, R"(, "attention_dropout": 0.0, "quantization_config": null)"), "");
    EXPECT_EQ(refused(engine, fp8),
              "weights stored in fp8 (quantization_config), where its executor reads F32, BF16 and "
              "F16");
    EXPECT_EQ(refused(engine, R"(, "attention_dropout": 0.1)"),
              "attention_dropout 0.1, where its executor drops nothing");
  }
  EXPECT_EQ(refused("verl", fp8 + R"(, "attention_dropout": 0.1)"), "");
}

}  // namespace
}  // namespace tessera
