// What `tessera explain` tells of a plan: what limits it, its memory by role, phase and rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "tests/cli/called.h"
#include "tests/cli/usage/usage.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Usage, ExplainSaysWhatLimitsThePlanNotThePlanAgain) {
  const Called called = call("explain " + plan());
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("time: "));
  EXPECT_THAT(called.out, HasSubstr("memory: the fullest rank holds "));
  EXPECT_THAT(called.out, HasSubstr("margin: "));
  EXPECT_THAT(called.out, Not(HasSubstr("tokens per micro-batch")));
  const auto facts = nlohmann::json::parse(call("explain " + plan() + " --json").out);
  EXPECT_GT(facts.at("longest_share").get<double>(), 0);
  EXPECT_GT(facts.at("fullest_bytes").at("weights").get<std::int64_t>(), 0);
}

TEST_F(Usage, ExplainTellsTheMemoryOfEveryRoleAndPhase) {
  Problems problems;
  const auto read = read_plan(plan(), problems);
  ASSERT_TRUE(read);
  const auto told = nlohmann::json::parse(call("explain --json " + plan(), "2>/dev/null").out);
  const auto& prediction = told.at("prediction");
  EXPECT_DOUBLE_EQ(prediction.at("step_s").get<double>(), read->prediction.step_s);
  for (const RolePlan& role : read->roles) {
    ASSERT_FALSE(role.memory.empty());
    for (const auto& [phase, use] : role.memory) {
      std::int64_t total = 0;
      for (const auto& bytes : prediction.at("memory")
                                   .at(std::string(name_of(role.role)))
                                   .at(std::string(name_of(phase)))) {
        total += bytes.get<std::int64_t>();
      }
      EXPECT_EQ(total, use.total()) << name_of(role.role) << " " << name_of(phase);
    }
  }
  EXPECT_THAT(call("explain " + plan()).out, HasSubstr("by role: actor "));
}

TEST_F(Usage, ExplainPrintsTheAccountOfMemoryOfARank) {
  Problems problems;
  const auto read = read_plan(plan(), problems);
  ASSERT_TRUE(read);
  const std::string words = "explain " + plan() + " --memory ";
  const Called told = call(words);
  EXPECT_EQ(told.code, 0) << told.out;
  EXPECT_THAT(told.out, HasSubstr("the fullest rank in its fullest phase"));
  for (const char* row : {"weights", "reserve", "sum", "limit", "left", "update_actor"}) {
    EXPECT_THAT(told.out, HasSubstr(std::string("\n  ") + row));
  }
  const auto account = nlohmann::json::parse(call(words + "--json", "2>/dev/null").out);
  EXPECT_EQ(account.at("peak_bytes"), read->prediction.peak_bytes.value);
  for (const auto& phase : account.at("phases")) {
    auto sum = phase.at("reserve_bytes").get<std::int64_t>();
    for (const auto& role : phase.at("roles")) {
      for (const auto& bytes : role.at("classes")) sum += bytes.get<std::int64_t>();
    }
    EXPECT_EQ(sum, phase.at("sum_bytes"));
    EXPECT_EQ(sum + phase.at("left_bytes").get<std::int64_t>(), account.at("limit_bytes"));
    if (phase.at("phase") == account.at("phase")) {
      EXPECT_EQ(sum, account.at("peak_bytes"));
    }
  }
  const auto one = nlohmann::json::parse(
      call(words + "--rank 3 --phase update_actor --json", "2>/dev/null").out);
  EXPECT_EQ(one.at("rank"), 3);
  EXPECT_EQ(one.at("phase"), "update_actor");
}

TEST_F(Usage, RanksAndPhasesOfNoAccountAre64) {
  const std::string words = "explain " + plan() + " --memory ";
  const Called phase = call(words + "--phase update_actr");
  EXPECT_EQ(phase.code, 64);
  EXPECT_THAT(phase.out, HasSubstr("did you mean 'update_actor'?"));
  const Called absent = call(words + "--phase update_critic");
  EXPECT_EQ(absent.code, 64);
  EXPECT_THAT(absent.out, HasSubstr("a phase of the plan: "));
  const Called rank = call(words + "--rank 4000");
  EXPECT_EQ(rank.code, 64);
  EXPECT_THAT(rank.out, HasSubstr("a rank that has a role"));
  EXPECT_EQ(call("explain " + plan() + " --rank 0").code, 64);  // of no account
}

}  // namespace
}  // namespace tessera
