// The order of a step's calls: the one that a plan states is the one that every rank of its
// simulation has, and in both a call comes after all calls whose outputs it reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "planner/plan/placement.h"
#include "planner/pricing/iteration.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

using Random = std::mt19937;

int drawn(Random& random, int most) {
  return static_cast<int>(random() % static_cast<unsigned>(most));
}

/// Every known call once. Each reads a random choice of what those before it in a random order
/// make, but the list has yet another order.
Dataflow random_calls(Random& random) {
  Dataflow calls = {{Phase::gen, Role::rollout, CallKind::generate, {}, {}},
                    {Phase::old_log_prob, Role::actor, CallKind::infer, {}, {}},
                    {Phase::ref, Role::reference, CallKind::infer, {}, {}},
                    {Phase::values, Role::critic, CallKind::infer, {}, {}},
                    {Phase::reward, Role::reward, CallKind::compute, {}, {}},
                    {Phase::adv, Role::actor, CallKind::compute, {}, {}},
                    {Phase::update_critic, Role::critic, CallKind::train, {}, {}},
                    {Phase::update_actor, Role::actor, CallKind::train, {}, {}}};
  if (drawn(random, 2) == 0) calls[4].kind = CallKind::infer;
  std::shuffle(calls.begin(), calls.end(), random);
  const int likely = 1 + drawn(random, 4);  // of an edge: one in so many
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].inputs = {"prompts"};
    calls[i].outputs = {std::string(name_of(calls[i].phase)) + "-made"};
    for (std::size_t j = 0; j < i; ++j) {
      if (drawn(random, likely) == 0) calls[i].inputs.push_back(calls[j].outputs.front());
    }
  }
  std::shuffle(calls.begin(), calls.end(), random);
  return calls;
}

/// The calls on random ranks, which roles share wholly, in part or not at all.
Plan random_plan(Dataflow calls, Random& random) {
  const auto has_model = [](const Call& call) { return call.kind != CallKind::compute; };
  std::set<Role> roles;
  for (const Call& call : calls) {
    if (has_model(call)) roles.insert(call.role);
  }
  Plan plan = plan_of_calls(std::move(calls));
  for (const Role role : roles) {
    const int tp = role == Role::rollout ? 1 : 2, dp = 1 + drawn(random, 2);
    const int first = drawn(random, 8 - tp * dp + 1);
    plan.roles.push_back(hand_role(plan, role, first, tp, 1, dp, 48));
  }
  plan.reshard.emplace_back();
  plan.schedule = schedule_of(default_schedule(plan.workload), placement_of(plan), 0);
  return plan;
}

/// Pairs (what reads, what makes) by nothing but the names.
std::vector<std::pair<Phase, Phase>> reads_of(const Dataflow& calls) {
  std::vector<std::pair<Phase, Phase>> reads;
  for (const Call& reader : calls) {
    for (const Call& maker : calls) {
      for (const std::string& made : maker.outputs) {
        if (std::count(reader.inputs.begin(), reader.inputs.end(), made) > 0) {
          reads.emplace_back(reader.phase, maker.phase);
        }
      }
    }
  }
  return reads;
}

std::vector<Phase> phases_of(const std::vector<ScheduledCall>& schedule) {
  std::vector<Phase> phases;
  for (const ScheduledCall& call : schedule) phases.push_back(call.phase);
  return phases;
}

std::ptrdiff_t place(const std::vector<Phase>& order, Phase phase) {
  return std::find(order.begin(), order.end(), phase) - order.begin();
}

void expect_stated_order(const Plan& plan) {
  const std::vector<Phase> order = phases_of(plan.schedule);
  EXPECT_EQ(order.size(), plan.workload.dataflow.size() + 1);  // and the reshard
  for (const Call& call : plan.workload.dataflow) {
    EXPECT_EQ(std::count(order.begin(), order.end(), call.phase), 1) << name_of(call.phase);
  }
  EXPECT_EQ(place(order, Phase::reshard) + 1, place(order, Phase::gen));
  for (const auto& [reader, maker] : reads_of(plan.workload.dataflow)) {
    EXPECT_LT(place(order, maker), place(order, reader))
        << name_of(reader) << " reads " << name_of(maker);
  }
}

/// The spans of phases by step and rank, in the order of their starts.
using ByRank = std::map<std::pair<int, int>, std::vector<const Span*>>;

ByRank by_rank(const Timeline& timeline) {
  ByRank ran;
  for (const Span& span : timeline.spans) {
    if (span.stream == Stream::phases) ran[{span.step, span.rank}].push_back(&span);
  }
  for (auto& [where, spans] : ran) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span* a, const Span* b) { return a->start_ns < b->start_ns; });
  }
  return ran;
}

void expect_ran_as_stated(const Plan& plan, const Timeline& timeline, int steps) {
  const std::vector<Phase> stated = phases_of(plan.schedule);
  std::map<std::pair<int, Phase>, std::pair<std::int64_t, std::int64_t>> when;  // of all ranks
  for (const auto& [where, spans] : by_rank(timeline)) {
    std::vector<Phase> order;
    for (const Span* span : spans) {
      order.push_back(span->phase);
      const auto [at, fresh] =
          when.try_emplace({where.first, span->phase}, span->start_ns, span->end_ns);
      at->second.first = std::min(at->second.first, span->start_ns);
      at->second.second = std::max(at->second.second, span->end_ns);
    }
    std::vector<Phase> expected = stated;  // of the calls that this rank takes part in
    std::erase_if(expected, [&](Phase phase) { return place(order, phase) == std::ssize(order); });
    EXPECT_EQ(order, expected) << "rank " << where.second;
  }
  for (int step = 0; step < steps; ++step) {
    for (const Call& call : plan.workload.dataflow) {
      EXPECT_TRUE(when.contains({step, call.phase})) << name_of(call.phase);
    }
    for (const auto& [reader, maker] : reads_of(plan.workload.dataflow)) {
      const std::pair reads(step, reader), makes(step, maker);
      EXPECT_GE(when[reads].first, when[makes].second)
          << name_of(reader) << " reads " << name_of(maker);
    }
  }
}

Calibration h100() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

TEST(CallOrder, OfEveryDataflowIsThePlansInTheSimulatorToo) {
  const Calibration calibration = h100();
  std::set<std::vector<Phase>> orders;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Dataflow calls = random_calls(random);
    const Plan plan = random_plan(std::move(calls), random);
    expect_stated_order(plan);
    expect_ran_as_stated(plan, simulate(plan, calibration, {.steps = 2}).timeline, 2);
    orders.insert(phases_of(plan.schedule));
    if (HasFailure()) return;
  }
  EXPECT_GT(orders.size(), 200U) << "too few different orders were tried";
}

TEST(CallOrder, OfThePresetsIsThePlansInTheSimulatorToo) {
  const Calibration calibration = h100();
  for (const char* algorithm : {"ppo", "grpo"}) {
    for (const KlPlace kl : {KlPlace::none, KlPlace::loss, KlPlace::reward}) {
      for (unsigned seed = 0; seed < 5; ++seed) {
        SCOPED_TRACE(algorithm + std::string(name_of(kl)));
        Random random(seed);
        const Plan plan = random_plan(preset_dataflow(algorithm, kl, seed % 2 == 0), random);
        expect_stated_order(plan);
        expect_ran_as_stated(plan, simulate(plan, calibration, {.steps = 2}).timeline, 2);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
