#include "executor/run/weight_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

/// PPO whose actor and rollout hold bf16.
Plan bf16_plan() {
  Plan plan = sample_plan();
  for (RolePlan& role : plan.roles) role.dtypes.param = DType::bf16;
  return plan;
}

RolePlan& role_of(Plan& plan, Role role) { return const_cast<RolePlan&>(*plan.find(role)); }

TEST(WeightMemory, IsOneWhereTrainingKeepsTheBytesOfTheRollout) {
  EXPECT_TRUE(shares_memory(bf16_plan(), {}));
  ReshardConfig options{.transport = ReshardTransport::send_recv,
                        .bucket_bytes = 1000,
                        .verify = true,
                        .incremental = true,
                        .overlap = true};
  EXPECT_TRUE(shares_memory(bf16_plan(), options));
}

TEST(WeightMemory, IsTwoWhereAViewWouldBeWrong) {
  const std::vector<std::pair<std::string, std::function<void(Plan&, ReshardConfig&)>>> changes{
      {"no reshard", [](Plan& plan, ReshardConfig&) { plan.reshard.clear(); }},
      {"whole tensors",
       [](Plan& plan, ReshardConfig&) { plan.reshard[0].mode = ReshardMode::full; }},
      {"another type at the rollout",
       [](Plan& plan, ReshardConfig&) { role_of(plan, Role::rollout).dtypes.param = DType::fp16; }},
      {"a narrower wire", [](Plan&, ReshardConfig& config) { config.wire = DType::bf16; }},
      {"unmap", [](Plan&, ReshardConfig& config) { config.unmap = true; }},
      {"parameters that leave the device",
       [](Plan& plan, ReshardConfig&) { role_of(plan, Role::actor).offload.parameters = true; }},
      {"FSDP",
       [](Plan& plan, ReshardConfig&) {
         ParallelLayout& layout = role_of(plan, Role::actor).layout;
         layout.dp_shard = 2;
         layout.zero = 3;
       }},
      {"a rollout one step off",
       [](Plan& plan, ReshardConfig&) {
         for (ScheduledCall& call : plan.schedule) std::erase(call.after, Phase::gen);
       }},
  };
  for (const auto& [name, change] : changes) {
    Plan plan = bf16_plan();
    ReshardConfig config;
    change(plan, config);
    EXPECT_FALSE(shares_memory(plan, config)) << name;
  }
}

TEST(WeightMemory, OfFp32IsOneOnlyBesideMasterWeightsOfTheirOwn) {
  Plan plan = bf16_plan();
  for (RolePlan& role : plan.roles) role.dtypes.param = DType::fp32;
  RolePlan& actor = role_of(plan, Role::actor);
  EXPECT_FALSE(shares_memory(plan, {}));
  actor.offload.optimizer = true;
  EXPECT_TRUE(shares_memory(plan, {}));
  actor.offload.optimizer = false;
  actor.layout.zero = 1;
  EXPECT_FALSE(shares_memory(plan, {})) << "nobody to cut with";
  actor.layout.dp_replicate = 2;
  EXPECT_TRUE(shares_memory(plan, {}));
}

}  // namespace
}  // namespace tessera
