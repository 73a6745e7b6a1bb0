#include "executor/bench/reshard_case.h"

#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/reshard_plan.h"
#include "cost_models/spec/model_spec.h"

namespace tessera {
namespace {

ModelSpec with_experts() {
  Problems problems;
  const auto model =
      read_model_spec(std::string(TESSERA_SOURCE_DIR) + "/configs/models/qwen3-30b-a3b", problems);
  EXPECT_TRUE(model.has_value());
  return *model;
}

ReshardMaps maps(const std::string& from, const std::string& to, int ranks) {
  const ModelSpec model = with_experts();
  return maps_of({from, to}, model, parameter_table(model), ranks, DType::bf16);
}

TEST(ReshardCase, ReadsExpertDegrees) {
  const ReshardMaps read = maps("tp2ep4", "tp4etp4", 4);
  EXPECT_EQ(read.training.layout.tp, 2);
  EXPECT_EQ(read.training.layout.dp, 2);
  EXPECT_EQ(read.training.layout.ep, 4);
  EXPECT_EQ(read.training.layout.etp, 1);
  EXPECT_EQ(read.rollout.layout.etp, 4);
  EXPECT_EQ(maps("fsdp4ep4", "tp4", 4).training.layout.zero, 3);
}

// A rank that holds a quarter of the experts lacks, of the quarter of each that it needs, three
// quarters; the rest of the model is on every rank. What is counted is one rank.
TEST(ReshardCase, ExpertsOnFourRanksMissThreeQuartersOfTheirSlices) {
  const ModelSpec model = with_experts();
  const ReshardMaps read = maps("ep4", "tp4etp4", 4);
  const ReshardPlan plan =
      plan_reshard(model_tensors(parameter_table(model), read.training, read.rollout, DType::bf16));
  const std::int64_t experts =
      std::int64_t{3} * model.hidden * model.moe->expert_ffn * model.moe->experts * model.layers;
  EXPECT_EQ(plan.bytes_received.value, 2 * experts / 4 * 3 / 4);
}

TEST(ReshardCase, RefusesDegreesOfExpertsThatDoNotFit) {
  const ModelSpec model = with_experts();
  for (const char* text : {"ep3", "ep8", "tp2ep4etp2", "fsdp4ep3", "ep0"}) {
    const ReshardCase which{text, "tp4"};
    EXPECT_THROW(check_cases(std::span(&which, 1), model, 4), Error) << text;
  }
  const ReshardCase fits{"fsdp4ep4", "tp4etp4"};
  EXPECT_NO_THROW(check_cases(std::span(&fits, 1), model, 4));
}

}  // namespace
}  // namespace tessera
