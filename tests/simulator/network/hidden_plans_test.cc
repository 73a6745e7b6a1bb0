// What backward passes of random plans hide: it fills no link, and no byte is lost.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/engine/simulate.h"
#include "tests/simulator/network/llama_plans.h"

namespace tessera {
namespace {

using Uses = std::map<std::tuple<std::string, Phase, Exchange>, double>;  // bytes, by link

Uses uses_of(const Simulation& simulation) {
  Uses uses;
  for (const LinkLoad& link : simulation.links) {
    for (const LinkUse& use : link.uses) {
      if (use.exchange != Exchange::gradients && use.exchange != Exchange::parameters) continue;
      uses[{link.name, use.phase, use.exchange}] += static_cast<double>(use.bytes);
    }
  }
  return uses;
}

/// The oracle of the bytes is the same plan on a machine that hides nothing.
TEST(HiddenExchange, OfRandomPlansFillsNoLinkAndLosesNoByte) {
  std::mt19937 random(3);
  const auto one_of = [&](std::vector<std::string> choices) {
    return choices[random() % choices.size()];
  };
  Calibration apart = constants();
  ASSERT_TRUE(apart.overlapped_dispatch);
  apart.overlapped_dispatch = false;
  int plans = 0, hide = 0;
  for (int i = 0; i < 200 && plans < 60; ++i) {
    const std::int64_t nodes = std::int64_t{1} << (random() % 3);
    std::vector<std::string> fixed{"placement=" + one_of({"colocated", "standalone"}),
                                   "actor.tp=" + one_of({"1", "2", "4", "8"}),
                                   "actor.pp=" + one_of({"1", "1", "2"}),
                                   "actor.zero=" + one_of({"0", "1", "1", "2", "3"})};
    const std::int64_t cards = std::int64_t{1} << (1 + random() % 3);
    const auto plan = plan_if_any(cards, nodes > 1 && random() % 2 == 0 ? 4 : 1, fixed,
                                  cluster_of(8, nodes, 141));
    if (!plan) continue;
    ++plans;
    const Simulation simulation = simulate(*plan, constants());
    for (const LinkLoad& link : simulation.links) {
      EXPECT_LE(link.most_load, 1 + 1e-5) << i << " " << link.name;
      EXPECT_LE(link.mean_load, link.busy_share + 1e-6) << i << " " << link.name;
      double carried = 0;
      for (const float load : link.load) carried += static_cast<double>(load);
      EXPECT_NEAR(carried / static_cast<double>(link.load.size()), link.mean_load,
                  1e-4 * link.mean_load)
          << i << " " << link.name;
    }
    for (const CommunicationPart& part : simulation.communication) {
      const bool synced =
          part.exchange == Exchange::gradients || part.exchange == Exchange::parameters;
      hide += synced && part.exposed_s < 0.9 * part.seconds ? 1 : 0;
    }
    const Uses hidden = uses_of(simulation), shown = uses_of(simulate(*plan, apart));
    ASSERT_EQ(hidden.size(), shown.size()) << i;
    for (const auto& [what, bytes] : shown) {
      const auto found = hidden.find(what);
      ASSERT_NE(found, hidden.end()) << i << " " << std::get<0>(what);
      EXPECT_NEAR(found->second, bytes, 1e-5 * bytes + 16) << i << " " << std::get<0>(what);
    }
  }
  EXPECT_GE(plans, 50);
  EXPECT_GT(hide, 20);
}

}  // namespace
}  // namespace tessera
