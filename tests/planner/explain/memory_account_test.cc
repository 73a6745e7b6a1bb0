// The account of memory against the plan's stated peak, the bytes that the search fills ranks by,
// and the classes in the plan's file.
#include "planner/explain/memory_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_request.h"
#include "tests/planner/planned.h"
#include "tests/planner/verl_megatron_request.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

PlanRequest verl_request(const std::vector<std::string>& words) {
  PlanRequest request = verl_megatron_request("qwen2.5-7b", "h200-8", "ppo-7b-1k", words);
  request.engine = "verl";
  return request;
}

MemoryAccount account_of(const Plan& plan, const Calibration& calibration,
                         const MemoryQuestion& question = {}) {
  Problems problems;
  auto account = memory_account(plan, calibration, question, problems);
  EXPECT_TRUE(account) << to_string(problems[0]);
  return account ? *std::move(account) : MemoryAccount{.phases = {{}}};
}

// Class by class.
Bytes added_up(const PhaseAccount& phase) {
  Bytes sum = phase.reserve;
  for (const RoleAccount& role : phase.roles) {
    for (const auto& [name, bytes] : memory_classes(role.use)) sum += bytes;
  }
  return sum;
}

// By the plan's own map.
int stage_in(const Plan& plan, Role role, int rank) {
  const RankMap map = rank_map_of(plan, role);
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    if (map.ranks[i] == rank) return map.coords[i].pp;
  }
  return -1;
}

/// Every rank's classes, in its own stages, sum to what is printed; the largest sum is the report's
/// peak; and each role's largest is what the search compares with its limit.
void expect_one_account(const PlanRequest& request) {
  const Plan plan = planned(request);
  const Calibration& calibration = request.calibration;
  const MemoryAccount fullest = account_of(plan, calibration);
  EXPECT_EQ(added_up(fullest.looked_at()), plan.prediction.peak_bytes);
  EXPECT_EQ(fullest.looked_at().sum, plan.prediction.peak_bytes);
  EXPECT_EQ(fullest.peak, fullest.planned_peak);
  EXPECT_GT(fullest.limit, fullest.looked_at().sum);

  CostEvaluator costs = evaluator_of(plan, calibration);
  std::map<Role, std::map<Phase, Bytes>> largest;
  std::map<Phase, Bytes> sums;
  for (int rank = 0; rank < plan.world_size(); ++rank) {
    const MemoryAccount account = account_of(plan, calibration, {.rank = rank});
    EXPECT_EQ(account.rank, rank);
    ASSERT_EQ(account.phases.size(), plan.schedule.size());
    for (const PhaseAccount& phase : account.phases) {
      EXPECT_EQ(phase.sum, added_up(phase)) << rank << " " << name_of(phase.phase);
      EXPECT_LE(phase.sum, account.looked_at().sum);
      sums[phase.phase] = std::max(sums[phase.phase], phase.sum);
      for (const RoleAccount& role : phase.roles) {
        EXPECT_EQ(role.stage, stage_in(plan, role.role, rank)) << rank << name_of(role.role);
        Bytes& most = largest[role.role][phase.phase];
        most = std::max(most, Bytes{role.use.total()});
      }
    }
  }
  for (const PhaseAccount& phase : fullest.phases) {
    EXPECT_EQ(phase.fullest_sum, sums.at(phase.phase)) << name_of(phase.phase);
  }
  for (const RolePlan& role : plan.roles) {
    const RoleCost cost = costs.cost(candidate_of(plan, role));
    for (const auto& [phase, use] : role.memory) {
      EXPECT_EQ(largest.at(role.role).at(phase), use.total() - use.reserve)
          << name_of(role.role) << " " << name_of(phase);
      if (cost.bytes[phase] > 0) {
        EXPECT_EQ(largest.at(role.role).at(phase), cost.bytes[phase]);
      }
    }
  }
}

TEST(MemoryAccount, SumsToThePeakOfTesserasPlans) {
  expect_one_account(digits_request());
  expect_one_account(ppo_request(1));
  PlanRequest apart = ppo_request(2);
  apart.fixed.placement = "actor+reference+reward | critic";
  expect_one_account(apart);
}

TEST(MemoryAccount, SumsToThePeakOfVerlsPlans) {
  expect_one_account(verl_request({}));
  expect_one_account(verl_request({"actor.recompute=full", "rollout.tp=2"}));
}

TEST(MemoryAccount, SumsToThePeakOfVerlsMegatronPlans) {
  expect_one_account(verl_megatron_request("qwen2.5-7b", "h100-8", "ppo-7b-1k"));
  expect_one_account(
      verl_megatron_request("qwen2.5-7b", "h100-8", "ppo-7b-1k", {"actor.tp=2", "actor.pp=4"}));
}

/// Ranks of other stages hold other layers.
TEST(MemoryAccount, OfARankIsThatOfItsStages) {
  const PlanRequest request = digits_request();  // actor tp2 pp2 on ranks 0 to 3
  const Plan plan = planned(request);
  for (int rank = 0; rank < 4; ++rank) {
    const MemoryAccount account =
        account_of(plan, request.calibration, {.rank = rank, .phase = Phase::update_actor});
    const RoleAccount& actor = account.looked_at().roles.front();
    ASSERT_EQ(actor.role, Role::actor);
    EXPECT_EQ(actor.stages, 2);
    const MemoryAccount first =
        account_of(plan, request.calibration, {.rank = 0, .phase = Phase::update_actor});
    EXPECT_EQ(actor.use == first.looked_at().roles.front().use, actor.stage == 0) << rank;
    EXPECT_EQ(actor.stage, stage_in(plan, Role::actor, rank));
  }
}

/// What is offloaded is asleep where it is not on the device, and nowhere both.
TEST(MemoryAccount, TellsWhatSleeps) {
  const PlanRequest request = verl_request({"actor.offload=all", "rollout.offload=all"});
  const Plan plan = planned(request);
  const auto role_in = [&](Role role, Phase phase) {
    const MemoryAccount account = account_of(plan, request.calibration, {.phase = phase});
    for (const RoleAccount& each : account.looked_at().roles) {
      if (each.role == role) return each;
    }
    ADD_FAILURE() << name_of(role);
    return RoleAccount{};
  };
  const RoleAccount idle = role_in(Role::actor, Phase::gen);
  const RoleAccount busy = role_in(Role::actor, Phase::update_actor);
  EXPECT_EQ(idle.use.weights, 0);
  EXPECT_GT(idle.asleep.weights, 0);
  EXPECT_EQ(idle.asleep.weights, busy.use.weights);
  EXPECT_GT(idle.asleep.optimizer, 0);
  EXPECT_EQ(idle.asleep.optimizer, busy.use.optimizer);
  EXPECT_EQ(busy.asleep, MemoryUse{});
  EXPECT_EQ(role_in(Role::rollout, Phase::gen).asleep, MemoryUse{});
  EXPECT_EQ(role_in(Role::rollout, Phase::update_actor).asleep.weights,
            role_in(Role::rollout, Phase::gen).use.weights);
  EXPECT_THAT(describe(account_of(plan, request.calibration, {.phase = Phase::gen})),
              HasSubstr("asleep"));
}

/// What FSDP gathers is not counted among the buffers of other collectives.
TEST(MemoryAccount, HasGatheredParametersApart) {
  const PlanRequest request =
      verl_request({"actor.zero=3", "actor.dp_shard=8", "actor.cp=1", "actor.offload=none"});
  const Plan plan = planned(request);
  const MemoryAccount account =
      account_of(plan, request.calibration, {.phase = Phase::update_actor});
  const RoleAccount& actor = account.looked_at().roles.front();
  ASSERT_EQ(actor.role, Role::actor);
  EXPECT_GT(actor.use.gathered, 0);
  EXPECT_EQ(actor.use.communication, 0);
  const std::string file = to_json(account);
  EXPECT_THAT(file, HasSubstr("\"gathered\": " + std::to_string(actor.use.gathered)));
}

/// Every rank's peak is the largest sum of its own account, and the largest of all the plan's.
TEST(RankPeaks, AreThoseOfEveryRanksOwnAccount) {
  for (const PlanRequest& request : {digits_request(), ppo_request(1)}) {
    const Plan plan = planned(request);
    Problems problems;
    const std::vector<RankPeak> peaks = rank_peaks(plan, request.calibration, problems);
    ASSERT_EQ(peaks.size(), static_cast<std::size_t>(plan.world_size()));
    Bytes most;
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      const MemoryAccount account = account_of(plan, request.calibration, {.rank = rank});
      Bytes peak;
      for (const PhaseAccount& phase : account.phases) peak = std::max(peak, added_up(phase));
      const RankPeak& told = peaks[static_cast<std::size_t>(rank)];
      EXPECT_EQ(told.peak, peak) << rank;
      EXPECT_EQ(told.limit, account.limit) << rank;
      most = std::max(most, told.peak);
    }
    EXPECT_EQ(most, plan.prediction.peak_bytes);
  }
}

TEST(MemoryAccount, RefusesRanksAndPhasesThatThePlanHasNot) {
  const PlanRequest request = digits_request();
  const Plan plan = planned(request);
  Problems problems;
  EXPECT_FALSE(memory_account(plan, request.calibration, {.rank = 4}, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(to_string(problems[0]), AllOf(HasSubstr("--rank"), HasSubstr("0 to 3")));
  EXPECT_FALSE(memory_account(plan, request.calibration,
                              {.rank = -1, .phase = Phase::update_critic}, problems));
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_THAT(to_string(problems[2]), AllOf(HasSubstr("--phase"), HasSubstr("update_actor")));
}

/// By other constants the account is another, and says that it is not the plan's.
TEST(MemoryAccount, SaysWhereThePlanStatesAnotherPeak) {
  const PlanRequest request = ppo_request(1);
  const Plan plan = planned(request);
  const MemoryAccount own = account_of(plan, request.calibration);
  EXPECT_THAT(describe(own), AllOf(HasSubstr("the fullest rank in its fullest phase"),
                                   Not(HasSubstr("the plan states"))));
  Calibration other = request.calibration;
  other.reserve_bytes.value += 1 << 30;
  const MemoryAccount account = account_of(plan, other);
  EXPECT_EQ(account.peak, own.peak + Bytes{1 << 30});
  EXPECT_THAT(describe(account), HasSubstr("the plan states a peak of"));
}

}  // namespace
}  // namespace tessera
