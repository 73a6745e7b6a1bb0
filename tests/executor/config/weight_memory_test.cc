#include "executor/config/weight_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "executor/arena/shared_arena.h"
#include "planner/plan/shared_weights.h"
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
         layout.dp_shard = layout.dp = 2;
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

// Oracle: the memory that the executor lays out.
TEST(WeightMemory, SparesWhatTheExecutorsArenaSpares) {
  struct Pair {
    int tp, pp, dp, rollout_tp, rollout_dp;
    RankOrder order;
  };
  int spared_on_all = 0;
  for (const Pair& pair : {Pair{2, 2, 1, 2, 2, RankOrder::strided},
                           {2, 2, 1, 2, 2, RankOrder::contiguous},
                           {4, 1, 1, 2, 2, RankOrder::strided},
                           {4, 1, 1, 2, 2, RankOrder::contiguous},
                           {1, 4, 1, 1, 4, RankOrder::contiguous},
                           {1, 1, 4, 4, 1, RankOrder::contiguous},
                           {2, 1, 2, 2, 2, RankOrder::contiguous}}) {
    Plan plan = bf16_plan();
    const RolePlan actor = sample_role(Role::actor, {0, 1, 2, 3}, pair.tp, pair.pp, pair.dp, 16);
    RolePlan& trained = role_of(plan, Role::actor);
    trained.layout = actor.layout;
    RolePlan& rollout = role_of(plan, Role::rollout);
    rollout.layout =
        sample_role(Role::rollout, {0, 1, 2, 3}, pair.rollout_tp, 1, pair.rollout_dp, 16).layout;
    rollout.rank_order = pair.order;
    ASSERT_TRUE(shares_memory(plan, {}));
    const ParameterTable table = parameter_table(plan.model_of(Role::actor));
    const RankMap from = rank_map_of(plan, Role::actor), to = rank_map_of(plan, Role::rollout);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int rank = 0; rank < 4; ++rank) {
      const std::int64_t spared = spared_bytes(shared_arena_on(table, from, to, rank, DType::bf16));
      EXPECT_EQ(shared_weight_bytes(plan, rank), spared) << rank;
      least = std::min(least, spared);
    }
    EXPECT_EQ(least_shared_weight_bytes(plan), least);
    spared_on_all += least > 0 ? 1 : 0;
  }
  EXPECT_GE(spared_on_all, 4);
  Plan unmapped = bf16_plan();
  unmapped.reshard[0].keep = false;
  EXPECT_EQ(least_shared_weight_bytes(unmapped), 0);
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
  actor.layout.dp = 2;
  EXPECT_TRUE(shares_memory(plan, {}));
}

}  // namespace
}  // namespace tessera
