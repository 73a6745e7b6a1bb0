// Every plan that the presets lead to for verl's Megatron has one set of process groups.
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <map>
#include <set>
#include <tuple>
#include <variant>

#include "planner/engines/engine_check.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "tests/planner/verl_megatron_request.h"

namespace tessera {
namespace {

using Groups = std::tuple<int, int, int, int, int, int>;

// Of the roles that train or score, by their first rank.
std::map<int, std::set<Groups>> groups_of(const Plan& plan) {
  std::map<int, std::set<Groups>> groups;
  for (const RolePlan& role : plan.roles) {
    if (role.role == Role::rollout || role.role == Role::reward) continue;
    const ParallelLayout& l = role.layout;
    groups[role.ranks.front()].insert({l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp});
  }
  return groups;
}

#ifdef __SANITIZE_ADDRESS__  // some twenty times slower: a part of the presets
constexpr std::array kModels{"qwen2.5-7b", "qwen3-30b-a3b", "moonlight-16b-a3b"};
constexpr std::array kClusters{"h200-8", "h800-64"};
#else
constexpr std::array kModels{
    "qwen2.5-0.5b", "qwen2.5-7b",        "qwen2.5-14b", "qwen2.5-32b",   "qwen2.5-72b",
    "llama3.1-8b",  "llama3.1-70b",      "qwen3-8b",    "qwen3-30b-a3b", "qwen3-235b-a22b",
    "mixtral-8x7b", "moonlight-16b-a3b", "deepseek-v3", "gpt-oss-20b"};
constexpr std::array kClusters{"h100-8",  "h800-8",  "h200-8", "h100-64",
                               "h800-64", "h200-64", "h20-64", "a100-64"};
#endif

TEST(VerlMegatron, PlansOfThePresetsHaveOneSetOfGroups) {
  int plans = 0, broken = 0, refused = 0;
  for (const char* model : kModels) {
    for (const char* cluster : kClusters) {
      for (const char* workload : {"grpo-7b-1k", "ppo-7b-1k"}) {
        Problems problems;
        const auto outcome = make_plan(verl_megatron_request(model, cluster, workload), problems);
        const Plan* const plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
        if (plan == nullptr) {
          ++refused;
          continue;
        }
        ++plans;
        for (const auto& [rank, groups] : groups_of(*plan)) {
          broken += groups.size() > 1 ? 1 : 0;
          EXPECT_EQ(groups.size(), 1u) << model << " " << cluster << " " << workload;
        }
        EXPECT_TRUE(outside_capabilities(*plan).empty()) << model << " " << cluster;
      }
    }
  }
  std::cout << plans << " plans, " << broken << " with several sets of groups; " << refused
            << " requests without a plan\n";
  EXPECT_GT(plans, (plans + refused) / 2);
}

}  // namespace
}  // namespace tessera
