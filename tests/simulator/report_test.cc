#include "simulator/engine/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "planner/pricing/evaluate.h"
#include "planner/pricing/memory_limit.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

Plan pipeline_plan() {
  Plan plan = plan_of_calls({{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}});
  plan.roles = {hand_role(plan, Role::actor, 0, 2, 2, 1, 24)};
  return plan;
}

TEST(Report, TasksOfAKindAreOneLineOfTheCriticalPath) {
  const Plan plan = pipeline_plan();
  const Simulation simulation = simulate(plan, arithmetic_only());
  const std::vector<PathShare> shares = path_shares(simulation);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].name, "B");  // backward is twice as long
  EXPECT_EQ(shares[1].name, "F");
  EXPECT_NEAR(shares[0].seconds + shares[1].seconds, simulation.step_s, 1e-12);
  EXPECT_EQ(shares[0].tasks + shares[1].tasks, std::ssize(simulation.critical_path));
}

TEST(Report, NamesTheRanksThatDoNotFit) {
  Plan plan = pipeline_plan();
  const Calibration calibration = arithmetic_only();
  const Simulation simulation = simulate(plan, calibration);
  EXPECT_THAT(to_text(simulation, plan, calibration), Not(HasSubstr("DOES NOT FIT")));
  EXPECT_THAT(to_text(simulation, plan, calibration), HasSubstr("update_actor"));
  plan.cluster.device.memory.value = simulation.peak_bytes() - 1;
  EXPECT_THAT(to_text(simulation, plan, calibration), HasSubstr("DOES NOT FIT"));
}

struct CountedLink {
  double bytes = 0, most = 0;
  int events = 0;
};

/// The counters of a trace that belong to no rank, by name: bytes under each curve, its highest
/// point, and its events. `rates`: of what is 100 per cent.
std::map<std::string, CountedLink> counted_links(const std::string& text,
                                                 const std::map<std::string, double>& rates) {
  const auto trace = nlohmann::json::parse(text);
  int links = -1;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name" && event.at("args").at("name") == "links (predicted)") {
      links = event.at("pid").get<int>();
    }
  }
  std::map<std::string, CountedLink> found;
  std::map<std::string, std::pair<double, double>> last;  // microseconds, per cent
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("pid") != links || event.at("ph") != "C") continue;
    const auto name = event.at("name").get<std::string>();
    const double time = event.at("ts").get<double>(), load = event.at("args").at("per cent");
    const auto [since, before] = std::exchange(last[name], std::pair(time, load));
    CountedLink& link = found[name];
    link.bytes += before / 100 * rates.at(name) * (time - since) * 1e-6;
    link.most = std::max(link.most, load);
    ++link.events;
  }
  for (const auto& [name, end] : last) EXPECT_EQ(end.second, 0) << name;
  return found;
}

TEST(Report, TheTraceCountsWhatCrossesEveryLink) {
  Plan plan = plan_of_calls({{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}});
  plan.cluster = cluster_of(2, 2, 80);
  plan.cluster.nics_per_node = 1;
  plan.cluster.nic = gb_per_s(10);
  plan.roles = {hand_role(plan, Role::actor, 0, 1, 1, 4, 48)};
  const Simulation simulation = simulate(plan, arithmetic_only());
  std::map<std::string, double> rates;
  for (const LinkLoad& link : simulation.links) rates[link.name] = link.bytes_per_s;
  const auto all = counted_links(to_chrome_trace(simulation), rates);
  ASSERT_EQ(all.size(), simulation.links.size());
  ASSERT_GE(all.size(), 8U);  // two ways of two cards and of some ports
  int events = 0;
  for (const LinkLoad& link : simulation.links) {
    const CountedLink& counted = all.at(link.name);
    // Windows are whole nanoseconds, in a step of less than a millisecond.
    EXPECT_NEAR(counted.bytes, static_cast<double>(link.bytes),
                1e-3 * static_cast<double>(link.bytes))
        << link.name;
    EXPECT_LE(counted.most, 100.1);
    events += counted.events;
  }
  // A fourth of the events for those that carry most.
  const auto few =
      counted_links(to_chrome_trace(simulation, 2 * static_cast<std::size_t>(events)), rates);
  ASSERT_FALSE(few.empty());
  EXPECT_LT(few.size(), all.size());
  std::int64_t left_out = 0, least = std::numeric_limits<std::int64_t>::max();
  for (const LinkLoad& link : simulation.links) {
    if (few.contains(link.name)) {
      least = std::min(least, link.bytes);
    } else {
      left_out = std::max(left_out, link.bytes);
    }
  }
  EXPECT_GE(least, left_out);
}

TEST(Report, TheJsonHoldsTheSameNumbers) {
  const Plan plan = pipeline_plan();
  const Calibration calibration = arithmetic_only();
  const Simulation simulation = simulate(plan, calibration);
  const auto json = nlohmann::json::parse(to_json(simulation, plan, calibration));
  EXPECT_EQ(json.at("step_s"), simulation.step_s);
  EXPECT_EQ(json.at("peak_bytes"), simulation.peak_bytes());
  EXPECT_EQ(json.at("limit_bytes"), usable_memory(plan, calibration).value);
  EXPECT_EQ(json.at("ranks").size(), 4u);
  EXPECT_EQ(json.at("phases").at(0).at("phase"), "update_actor");
  EXPECT_EQ(json.at("critical_path").size(), simulation.critical_path.size());
  EXPECT_EQ(json.at("critical_path").back().at("end_ns").get<double>() * 1e-9, simulation.step_s);
}

}  // namespace
}  // namespace tessera
