// Which dataflows of a workload's own the executor carries out, and how it refuses the others.
#include "executor/config/dataflow_check.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "cost_models/documents/problem.h"
#include "tests/executor/config/grpo_plan.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The plan's calls in the order that the dataflow gives them.
Plan with(Plan plan, Dataflow calls) {
  plan.workload.algorithm = "custom";
  plan.workload.dataflow = std::move(calls);
  plan.schedule = default_schedule(plan.workload);
  return plan;
}

std::vector<std::string> refused(const Plan& plan, const std::string& algorithm = "") {
  Problems problems;
  const auto config = parse_run_config("data: {train_files: a.jsonl}\nalgorithm: {" + algorithm +
                                           "}\ntrainer: {total_training_steps: 1}\n",
                                       "run.yaml", plan, problems);
  EXPECT_TRUE(config) << to_string(problems.at(0));
  if (config) check_dataflow(plan, *config, "plan.json", problems);
  std::vector<std::string> all;
  for (const Problem& problem : problems) all.push_back(to_string(problem));
  return all;
}

Call call(Phase phase, Role role, CallKind kind, std::vector<std::string> inputs,
          std::vector<std::string> outputs) {
  return {phase, role, kind, std::move(inputs), std::move(outputs)};
}

const Call kGen = call(Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"texts"});
const Call kOld = call(Phase::old_log_prob, Role::actor, CallKind::infer, {"texts"}, {"old"});
const Call kRef = call(Phase::ref, Role::reference, CallKind::infer, {"texts"}, {"ref"});
const Call kReward = call(Phase::reward, Role::reward, CallKind::compute, {"texts"}, {"scores"});
const Call kAdv = call(Phase::adv, Role::actor, CallKind::compute, {"scores"}, {"adv"});
const Call kUpdate =
    call(Phase::update_actor, Role::actor, CallKind::train, {"texts", "old", "ref", "adv"}, {});

TEST(DataflowCheck, PresetsPass) {
  EXPECT_THAT(refused(sample_plan()), IsEmpty());
  EXPECT_THAT(refused(grpo_plan()), IsEmpty());
}

TEST(DataflowCheck, AnyOrderInWhichEveryCallFindsWhatItReadsPasses) {
  EXPECT_THAT(refused(with(grpo_plan(), {kGen, kReward, kAdv, kRef, kOld, kUpdate})), IsEmpty());
  EXPECT_THAT(refused(with(grpo_plan(), {kUpdate, kAdv, kRef, kOld, kReward, kGen})), IsEmpty());
}

TEST(DataflowCheck, ACallThatDoesNotFindWhatItReadsIsRefused) {
  Call early = kAdv;
  early.inputs = {"texts"};
  EXPECT_THAT(
      refused(with(grpo_plan(), {kGen, early, kReward, kOld, kRef, kUpdate})),
      ElementsAre(HasSubstr("plan.json:/dataflow: found 'adv' without 'reward' before it")));
  Call alone = kUpdate;
  alone.inputs = {"texts", "adv", "ref"};
  const Plan without = with(grpo_plan(), {kGen, kReward, kAdv, kRef, alone});
  EXPECT_THAT(refused(without),
              ElementsAre(HasSubstr("found 'update_actor' without 'old_log_prob' before it")));
  EXPECT_THAT(refused(without, "rollout_correction: {bypass_mode: true}"), IsEmpty())
      << "generation makes them";
}

TEST(DataflowCheck, WhatTheRunFileReadsCounts) {
  const Plan late = with(grpo_plan(), {kGen, kReward, kAdv, kOld, kRef, kUpdate});
  EXPECT_THAT(refused(late), IsEmpty());
  EXPECT_THAT(refused(late, "rollout_correction: {rollout_is: token}"),
              ElementsAre(HasSubstr("'adv' without 'old_log_prob' before it")));
}

/// What a call of this PPO reads, as docs/inputs/workload.md says it: the divergence is in the
/// reward, and the estimator is GAE.
const std::map<Phase, std::vector<Phase>> kReads = {
    {Phase::gen, {}},
    {Phase::old_log_prob, {Phase::gen}},
    {Phase::ref, {Phase::gen}},
    {Phase::values, {Phase::gen}},
    {Phase::reward, {Phase::gen}},
    {Phase::adv, {Phase::reward, Phase::values, Phase::ref, Phase::old_log_prob}},
    {Phase::update_critic, {Phase::values, Phase::adv}},
    {Phase::update_actor, {Phase::adv, Phase::old_log_prob}}};

/// A run takes the calls in the order of its plan: it accepts exactly those orders in which every
/// call comes after all that it reads.
TEST(DataflowCheck, OfAllOrdersThoseRunInWhichEveryCallFindsWhatItReads) {
  Plan plan = sample_plan();
  Problems problems;
  const auto config =
      parse_run_config("data: {train_files: a.jsonl}\ntrainer: {total_training_steps: 1}\n",
                       "run.yaml", plan, problems);
  ASSERT_TRUE(config) << to_string(problems.at(0));
  std::vector<Phase> order;
  for (const auto& [phase, reads] : kReads) order.push_back(phase);
  std::sort(order.begin(), order.end());
  int accepted = 0;
  do {
    plan.schedule.clear();
    bool finds = true;
    for (auto at = order.begin(); at != order.end(); ++at) {
      plan.schedule.push_back({.phase = *at});
      for (const Phase read : kReads.at(*at))
        finds = finds && std::find(order.begin(), at, read) != at;
    }
    problems.clear();
    check_dataflow(plan, *config, "plan.json", problems);
    ASSERT_EQ(problems.empty(), finds) << (problems.empty() ? "" : to_string(problems[0]));
    accepted += finds ? 1 : 0;
  } while (std::next_permutation(order.begin(), order.end()));
  // The first is gen and the fifth at the earliest adv, behind four in any order; then two updates.
  EXPECT_EQ(accepted, 24 * 2);
}

TEST(DataflowCheck, ACallOfAnotherRoleOrKindIsRefused) {
  Call by_actor = kRef;
  by_actor.role = Role::actor;
  EXPECT_THAT(refused(with(grpo_plan(), {kGen, kOld, by_actor, kReward, kAdv, kUpdate})),
              ElementsAre(HasSubstr("'ref' of role actor as infer, expected role reference")));
}

TEST(DataflowCheck, ARunTrainsTheActor) {
  EXPECT_THAT(refused(with(grpo_plan(), {kGen, kOld, kRef, kReward, kAdv})),
              ElementsAre(HasSubstr("no call 'update_actor'")));
}

}  // namespace
}  // namespace tessera
