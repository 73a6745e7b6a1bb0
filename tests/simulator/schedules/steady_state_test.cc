// Steps that overlap: the slowest cycle against event runs of many steps, against closed forms, and
// against the simulator's own run of a plan's consecutive steps.
#include "simulator/schedules/steady_state.h"

#include <gmock/gmock.h>

#include <random>

#include "cost_models/spec/cluster_spec.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "simulator/engine/simulate.h"
#include "simulator/schedules/lent_rollout.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<StepSchedule>& every_schedule() {
  static const std::vector<StepSchedule> all = {
      {StepOverlap::synchronous},     {StepOverlap::split},
      {StepOverlap::one_step_off},    {StepOverlap::asynchronous, 1},
      {StepOverlap::asynchronous, 2}, {StepOverlap::asynchronous, 4}};
  return all;
}

Workload ppo() { return workload_of("ppo", KlPlace::reward, true); }

/// Of PPO with every role on ranks of its own choice: `rollout`, `actor`, `critic`.
CallRanks ranks_of(const std::vector<int>& rollout, const std::vector<int>& actor,
                   const std::vector<int>& critic) {
  std::vector<int> both = rollout;
  both.insert(both.end(), actor.begin(), actor.end());
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return {{Phase::reshard, both}, {Phase::gen, rollout},          {Phase::old_log_prob, actor},
          {Phase::ref, actor},    {Phase::values, critic},        {Phase::reward, critic},
          {Phase::adv, actor},    {Phase::update_critic, critic}, {Phase::update_actor, actor}};
}

CallDurations random_durations(std::mt19937& random) {
  CallDurations durations;
  for (const auto& [phase, unused] : ranks_of({0}, {1}, {2})) {
    durations[phase] = 1000 + static_cast<std::int64_t>(random() % 1'000'000);
  }
  return durations;
}

/// Between two steps of an event run, once it is steady. 480 steps hold whole numbers of the
/// patterns of 1, 2, 3 and 5 steps that staleness may bring.
double period_of_run(const Workload& workload, const CallTimes& times,
                     const StepSchedule& schedule) {
  const CallGraph graph = call_graph(workload, times.ranks, schedule, times.lent_ranks);
  constexpr std::size_t kSteps = 960;
  const auto runs = run(step_tasks(graph, times.draws, kSteps, times.lent_ns));
  const auto ends_at = [&](std::size_t step) {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < graph.calls.size(); ++i) {
      end = std::max(end, runs[step * graph.calls.size() + i].end_ns);
    }
    return end;
  };
  return static_cast<double>(ends_at(kSteps - 1) - ends_at(kSteps / 2 - 1)) / (kSteps / 2.0);
}

TEST(SteadyState, IsWhatManyStepsComeTo) {
  const std::vector<CallRanks> placements = {
      ranks_of({0, 1}, {0, 1}, {0, 1}), ranks_of({0}, {1, 2}, {1, 2}), ranks_of({0}, {1}, {2, 3}),
      ranks_of({0, 1}, {0, 1}, {2}), ranks_of({0, 1, 2}, {1, 2}, {3})};
  int compared = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    for (const CallRanks& ranks : placements) {
      const CallTimes times{ranks, {random_durations(random)}};
      for (const StepSchedule& schedule : every_schedule()) {
        if (!why_no_schedule(ranks, schedule).empty()) continue;
        const double said = steady_state(ppo(), times, schedule).step_s * 1e9;
        EXPECT_NEAR(said, period_of_run(ppo(), times, schedule), 1e-6 * said)
            << seed << " " << name_of(schedule);
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 60 * (3 * 2 + 2 * 6));
}

/// Two pools, one generating, one training: what a page of paper says.
TEST(SteadyState, HasTheClosedFormOfTwoPools) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const CallTimes times{ranks_of({0}, {1, 2}, {1, 2}), {random_durations(random)}};
    const CallDurations& each = times.draws.front();
    std::int64_t training = 0;
    for (const auto& [phase, duration] : each) training += duration;
    const std::int64_t sent = each.at(Phase::reshard), gen = each.at(Phase::gen);
    training -= sent + gen;
    const auto step_ns = [&](const StepSchedule& schedule) {
      return 1e9 * steady_state(ppo(), times, schedule).step_s;
    };
    const auto whole = static_cast<double>(sent + gen + training);
    EXPECT_NEAR(step_ns({StepOverlap::synchronous}), whole, 1e-3);
    EXPECT_NEAR(step_ns({StepOverlap::split}), whole, 1e-3);
    EXPECT_NEAR(step_ns({StepOverlap::one_step_off}),
                static_cast<double>(sent + std::max(gen, training)), 1e-3);
    for (const int staleness : {1, 2, 4}) {
      const double around = whole / (1 + staleness);
      const auto alone = static_cast<double>(std::max(sent + gen, training));
      EXPECT_NEAR(step_ns({StepOverlap::asynchronous, staleness}), std::max(around, alone), 1e-3);
    }
  }
}

TEST(SteadyState, ResponsesLackNoMoreUpdatesThanTheScheduleAllows) {
  std::mt19937 random(7);
  CallTimes times{ranks_of({0}, {1}, {2}), {}};
  for (int draw = 0; draw < 40; ++draw) times.draws.push_back(random_durations(random));
  for (const StepSchedule& schedule : every_schedule()) {
    const SteadyState state = steady_state(ppo(), times, schedule);
    const std::int64_t most =
        schedule.overlap == StepOverlap::one_step_off ? 1 : schedule.staleness;
    EXPECT_LE(state.most_staleness, most) << name_of(schedule);
    EXPECT_LE(state.staleness, static_cast<double>(most)) << name_of(schedule);
    EXPECT_GE(state.staleness, schedule.overlap == StepOverlap::one_step_off ? 1 : 0);
    EXPECT_GE(state.drawn_step_s, 0.999 * state.step_s) << "draws wait for one another, too";
  }
  const SteadyState far = steady_state(ppo(), times, {StepOverlap::asynchronous, 4});
  EXPECT_GT(far.most_staleness, 0);
}

TEST(SteadyState, NamesWhatIsWaitedForAndWhoIsIdle) {
  CallTimes times{ranks_of({0, 1}, {2, 3, 4}, {2, 3, 4}), {{}}};
  for (const auto& [phase, unused] : times.ranks) times.draws.front()[phase] = 1'000'000'000;
  times.draws.front()[Phase::gen] = 50'000'000'000;
  const SteadyState state = steady_state(ppo(), times, {StepOverlap::one_step_off});
  EXPECT_NEAR(state.step_s, 51, 1e-9);
  EXPECT_THAT(state.cycle, testing::UnorderedElementsAre(Phase::reshard, Phase::gen));
  EXPECT_EQ(state.cycle_steps, 1);
  ASSERT_EQ(state.pools.size(), 2U);
  EXPECT_THAT(state.pools[0].ranks, ElementsAre(0, 1));
  EXPECT_NEAR(state.pools[0].idle_s, 0, 1e-9);
  EXPECT_THAT(state.pools[1].ranks, ElementsAre(2, 3, 4));
  EXPECT_NEAR(state.pools[1].idle_s, 51 - 8, 1e-9);
}

TEST(SteadyState, ARolloutAmongTheTrainersCannotRunAhead) {
  const CallRanks shared = ranks_of({0, 1}, {1, 2}, {3});
  for (const StepSchedule& schedule : every_schedule()) {
    const bool ahead = schedule.overlap == StepOverlap::one_step_off ||
                       schedule.overlap == StepOverlap::asynchronous;
    const std::string why = why_no_schedule(shared, schedule);
    if (ahead) {
      EXPECT_THAT(why, HasSubstr("shares ranks with")) << name_of(schedule);
    } else {
      EXPECT_THAT(why, IsEmpty()) << name_of(schedule);
    }
  }
}

Plan plan_with(bool one_step_off, const std::vector<std::string>& settings) {
  Problems problems;
  PlanRequest request;
  request.engine = one_step_off ? "verl" : "tessera";
  request.models["actor"] = {*read_model_spec("qwen2.5-7b", problems), "qwen2.5-7b", ""};
  request.cluster = *read_cluster_spec("h100-8", problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.workload.response_tokens = {1024, 0, 1024};  // all alike: one step is like the next
  request.calibration = *find_calibration("h100", problems);
  request.one_step_off = one_step_off;
  request.fixed = parse_settings(settings, problems);
  const auto outcome = make_plan(request, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, problems);
  return std::get<Plan>(*outcome);
}

/// Seconds between steps of the simulator's own run, operation by operation.
double simulated_period(const Plan& plan, const Calibration& calibration) {
  const auto seconds_of = [&](std::int64_t steps) {
    return simulate(plan, calibration, {.steps = steps}).step_s * static_cast<double>(steps);
  };
  return (seconds_of(8) - seconds_of(4)) / 4;
}

TEST(SteadyState, AgreesWithTheSimulatorsConsecutiveSteps) {
  Problems problems;
  const Calibration calibration = *find_calibration("h100", problems);
  const auto step_s = [&](const Plan& plan, StepOverlap overlap) {
    return steady_state(plan.workload, call_times(plan, calibration, {}, 1), {overlap}).step_s;
  };
  const Plan colocated = plan_with(false, {"placement=colocated"});
  const double together = simulated_period(colocated, calibration);
  EXPECT_NEAR(step_s(colocated, StepOverlap::split), together, 0.002 * together);
  EXPECT_NEAR(step_s(colocated, StepOverlap::synchronous), together, 0.002 * together);
  const Plan apart = plan_with(false, {"placement=standalone"});
  const double waiting = simulated_period(apart, calibration);
  EXPECT_NEAR(step_s(apart, StepOverlap::split), waiting, 0.002 * waiting);
  const Plan beside = plan_with(true, {"placement=standalone"});
  const double ahead = simulated_period(beside, calibration);
  EXPECT_NEAR(step_s(beside, StepOverlap::one_step_off), ahead, 0.002 * ahead);
  EXPECT_GT(step_s(beside, StepOverlap::split), 1.05 * ahead);
}

TEST(SteadyState, WithTrainersLentIsWhatManyStepsComeTo) {
  int compared = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    for (const auto& [ranks, lent] : {std::pair{ranks_of({0}, {1, 2}, {1, 2}), std::vector{1, 2}},
                                      std::pair{ranks_of({0}, {1, 2}, {1, 2}), std::vector{1}},
                                      std::pair{ranks_of({0}, {1}, {2, 3}), std::vector{1, 2, 3}},
                                      std::pair{ranks_of({0}, {1}, {2, 3}), std::vector{2, 3}}}) {
      CallTimes times{ranks, {random_durations(random)}};
      times.lent_ranks = lent;
      times.lent_ns = {1000 + static_cast<std::int64_t>(random() % 1'000'000)};
      for (const StepSchedule& schedule : every_schedule()) {
        const double said = steady_state(ppo(), times, schedule).step_s * 1e9;
        EXPECT_NEAR(said, period_of_run(ppo(), times, schedule), 1e-6 * said)
            << seed << " " << name_of(schedule);
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 60 * 4 * 6);
}

/// Two pools of which the trainers generate, too: what a page of paper says.
TEST(SteadyState, WithTrainersLentHasTheClosedFormOfTwoPools) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    CallTimes times{ranks_of({0}, {1, 2}, {1, 2}), {random_durations(random)}};
    const std::int64_t lent = 1000 + static_cast<std::int64_t>(random() % 1'000'000);
    times.lent_ranks = {1, 2};
    times.lent_ns = {lent};
    const CallDurations& each = times.draws.front();
    std::int64_t training = 0;
    for (const auto& [phase, duration] : each) training += duration;
    const std::int64_t sent = each.at(Phase::reshard), gen = each.at(Phase::gen);
    training -= sent + gen;
    const auto step_ns = [&](const StepSchedule& schedule) {
      return 1e9 * steady_state(ppo(), times, schedule).step_s;
    };
    EXPECT_NEAR(step_ns({StepOverlap::split}),
                static_cast<double>(sent + std::max(gen, lent) + training), 1e-3);
    EXPECT_NEAR(step_ns({StepOverlap::one_step_off}),
                static_cast<double>(sent + std::max(gen, lent + training)), 1e-3);
  }
}

/// As many trainers as the rollout has ranks, and a cache that both hold.
TEST(LentRollout, TakesTheTrainersAsLongAsTheRolloutWithTheSamePrompts) {
  Problems problems;
  const Calibration calibration = *find_calibration("h100", problems);
  const Plan plan =
      plan_with(false, {"placement=actor+reference|rollout", "rollout.tp=1", "rollout.dp=4",
                        "rollout.max_sequences=64", "actor.dp=4", "actor.tp=1"});
  const CallTimes whole = call_times(plan, calibration, {}, 2);
  LentRollout lender(plan, calibration, {}, whole.ranks);
  ASSERT_EQ(lender.why_not(0), "");
  const std::int64_t all = plan.workload.prompts_per_step;
  const LentShare share = lender.share(all);
  ASSERT_EQ(share.replicas, 4);
  ASSERT_EQ(share.sequences, 64);
  EXPECT_GT(share.to_s, 0);
  const CallTimes lent = lender.times(whole, all);
  for (std::size_t draw = 0; draw < whole.draws.size(); ++draw) {
    EXPECT_EQ(lent.draws[draw].at(Phase::gen), 0);
    const double generates =
        static_cast<double>(lent.lent_ns[draw]) * 1e-9 - share.to_s - share.back_s;
    EXPECT_NEAR(generates, static_cast<double>(whole.draws[draw].at(Phase::gen)) * 1e-9, 1e-6);
  }
  // Half of the prompts to each: half of the waves, and never longer than all of them.
  const CallTimes half = lender.times(whole, all / 2);
  EXPECT_LT(half.draws[0].at(Phase::gen), 0.7 * whole.draws[0].at(Phase::gen));
  EXPECT_LT(half.lent_ns[0], 0.7 * lent.lent_ns[0]);
  const ScheduleComparison compared = compare_schedules(plan, calibration, {}, 1);
  const auto lends = [](const SteadyState& state) { return state.lent.prompts > 0; };
  const auto found = std::find_if(compared.states.begin(), compared.states.end(), lends);
  ASSERT_NE(found, compared.states.end());
  EXPECT_LT(found->step_s, steady_state(plan.workload, whole, {StepOverlap::split}).step_s);
  EXPECT_THAT(to_text(compared), HasSubstr("split, trainers lent"));
}

TEST(LentRollout, SaysWhatMemoryDoesNotAllow) {
  Problems problems;
  const Calibration calibration = *find_calibration("h100", problems);
  const Plan plan = plan_with(false, {"placement=standalone"});
  const CallTimes whole = call_times(plan, calibration, {}, 1);
  LentRollout lender(plan, calibration, {}, whole.ranks);
  EXPECT_EQ(lender.why_not(0), "");
  EXPECT_THAT(lender.why_not(std::int64_t{70} << 30), HasSubstr("a replica needs"));
  // bf16 weights of a rank of the actor.
  const RolePlan& actor = *plan.find(Role::actor);
  const double parameters = 7.6e9 / (actor.layout.tp * actor.layout.pp * actor.layout.dp_shard);
  EXPECT_NEAR(static_cast<double>(lender.copy_bytes()), 2 * parameters, 0.25 * 2 * parameters);
  Plan small = plan;
  small.cluster.device.memory.value = plan.prediction.peak_bytes.value;
  EXPECT_THAT(LentRollout(small, calibration, {}, whole.ranks).why_no_copy(),
              HasSubstr("the copy of its weights"));
}

TEST(SteadyState, ReportsSayWhatCannotBe) {
  Problems problems;
  const Calibration calibration = *find_calibration("h100", problems);
  const Plan plan = plan_with(false, {"placement=colocated"});
  const ScheduleComparison compared = compare_schedules(plan, calibration, {}, 2);
  EXPECT_EQ(compared.states.size(), 2U);
  EXPECT_EQ(compared.refused.size(), 5U);  // and no trainers to lend
  EXPECT_THAT(to_text(compared), HasSubstr("no: the rollout shares ranks with old_log_prob"));
  EXPECT_THAT(to_json(compared), HasSubstr("\"schedule\": \"asynchronous, staleness 4\""));
}

}  // namespace
}  // namespace tessera
