#include "planner/request/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/solution.h"

namespace tessera {
namespace {

FixedSettings parsed(std::vector<std::string> words, Problems& problems) {
  return parse_settings(words, problems);
}

TEST(Settings, ReadWhatTheyWrite) {
  Problems problems;
  const std::vector<std::string> words = {"actor.tp=2", "actor.zero=0", "rollout.max_sequences=64",
                                          "placement=actor|critic"};
  const FixedSettings settings = parse_settings(words, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(words_of(settings), words);
  EXPECT_EQ(settings.find(Role::actor, Field::tp), 2);
  EXPECT_TRUE(settings.allows(Role::actor, Field::pp, 7));
  EXPECT_FALSE(settings.allows(Role::actor, Field::tp, 4));
}

TEST(Settings, RefuseEveryBadWordAtOnceWithTheNearestName) {
  Problems problems;
  parsed({"acotr.tp=2", "actor.token=2", "actor.tp=two", "actor.tp=0", "rollout.zero=1", "tp=2",
          "actor.pp=2", "actor.pp=4"},
         problems);
  ASSERT_EQ(problems.size(), 7);
  EXPECT_NE(problems[0].hint.find("actor"), std::string::npos);
  EXPECT_NE(problems[1].hint.find("tokens"), std::string::npos);
}

TEST(Settings, RefuseAPlacementOfNobody) {
  for (const char* const word : {"placement=", "placement=  "}) {
    Problems problems;
    EXPECT_EQ(parsed({word}, problems).placement, "");
    ASSERT_EQ(problems.size(), 1U) << word;
    EXPECT_EQ(problems[0].found, "nothing");
    EXPECT_NE(problems[0].expected.find("actor+reference | critic"), std::string::npos);
  }
}

TEST(Settings, ListTheFieldsOfARoleThatLacksOne) {
  Problems problems;
  parsed({"rollout.tokens=1", "rollout.zero=1", "reference.recompute=full"}, problems);
  ASSERT_EQ(problems.size(), 3U);
  const std::string rollout = "gpus, tp, pp, dp, max_sequences, ep, etp, offload, gpu";
  EXPECT_EQ(problems[0].expected, rollout);
  EXPECT_EQ(problems[1].expected, rollout);
  EXPECT_NE(problems[2].expected.find("tokens, cp,"), std::string::npos) << problems[2].expected;
}

TEST(Settings, ShardRolesThatAreNotTrainedWhollyOrNotAtAll) {
  Problems problems;
  parsed({"reference.zero=3", "reward.zero=0", "actor.sequence_parallel=1"}, problems);
  EXPECT_TRUE(problems.empty());
  parsed({"reference.zero=1", "actor.sequence_parallel=2", "rollout.sequence_parallel=1"},
         problems);
  ASSERT_EQ(problems.size(), 3);
  EXPECT_NE(problems[0].expected.find("0 or 3"), std::string::npos);
  EXPECT_EQ(problems[1].expected, "0, 1");
}

TEST(Settings, OfASolutionFixEveryLayoutOfIt) {
  Solution solution;
  solution.placement = {{Role::actor, Role::rollout}, {Role::reference}};
  Candidate& actor = solution.choice[Role::actor];
  actor = {{.tp = 4, .pp = 2, .dp = 4, .dp_shard = 2}, Role::actor, 32, 3, 4096};
  actor.recompute = Recompute::full;
  actor.offload.optimizer = true;
  Candidate& rollout = solution.choice[Role::rollout];
  rollout = {{.tp = 2, .dp = 16}, Role::rollout, 32};
  rollout.max_sequences = 64;
  rollout.offload.parameters = true;
  Candidate& reference = solution.choice[Role::reference];
  reference = {{.cp = 2, .dp = 2}, Role::reference, 4, 0, 8192};
  reference.ulysses = true;
  Problems problems;
  const FixedSettings fixed = parse_settings(settings_of(solution), problems);
  ASSERT_TRUE(problems.empty()) << to_string(problems[0]);
  EXPECT_EQ(fixed.placement, "actor | reference");
  const std::map<std::pair<Role, Field>, std::int64_t> named = {
      {{Role::actor, Field::dp_shard}, 2},      {{Role::actor, Field::zero}, 3},
      {{Role::actor, Field::recompute}, 2},     {{Role::actor, Field::offload}, 1},
      {{Role::actor, Field::tokens}, 4096},     {{Role::rollout, Field::max_sequences}, 64},
      {{Role::rollout, Field::offload}, 2},     {{Role::reference, Field::cp}, 2},
      {{Role::reference, Field::context}, 1},   {{Role::reference, Field::head_layers}, 0},
      {{Role::reference, Field::tokens}, 8192}, {{Role::actor, Field::vpp}, 1}};
  for (const auto& [field, value] : named) {
    EXPECT_EQ(fixed.find(field.first, field.second), value) << name_of(field.second);
  }
  EXPECT_FALSE(fixed.find(Role::reference, Field::zero));
  EXPECT_FALSE(fixed.find(Role::rollout, Field::tokens));
}

}  // namespace
}  // namespace tessera
