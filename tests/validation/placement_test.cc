// HybridFlow's best placements (arXiv:2409.19256, 8.3 and 8.5: PPO with four models, 1,024 prompt
// and 1,024 response tokens, batch 1,024, 8 updates, up to 16 x 8 A100) beside ours: what the
// search takes, what the published placement costs under the same models, and the difference.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "cost_models/derived_calibration.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/validation/data";

ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv,
                std::int64_t ffn) {
  return {.family = ModelFamily::llama,
          .layers = layers,
          .hidden = hidden,
          .query_heads = heads,
          .kv_heads = kv,
          .head_dim = hidden / heads,
          .ffn = ffn,
          .vocab = 32000,
          .max_positions = 4096};
}

ModelSpec llama_of(const std::string& size) {
  if (size == "7B") return llama(32, 4096, 32, 32, 11008);
  if (size == "13B") return llama(40, 5120, 40, 40, 13824);
  if (size == "34B") return llama(48, 8192, 64, 8, 22016);
  return llama(80, 8192, 64, 8, 28672);
}

struct Case {
  std::string actor, critic;
  int gpus;
  std::string published;           // as settings write it; "colocated"
  std::vector<std::string> sizes;  // of its blocks
};

PlanRequest request_of(const Case& published) {
  Problems problems;
  PlanRequest request;
  request.engine = "verl-megatron";
  request.models["actor"] = {llama_of(published.actor), "actor", ""};
  request.models["critic"] = {llama_of(published.critic), "critic", ""};
  request.models["reward"] = {llama_of(published.critic), "reward", ""};
  request.cluster = *read_cluster_spec(kData / "clusters/hybridflow-a100-128.yaml", problems);
  request.cluster.nodes = published.gpus / 8;
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  request.workload = *read_workload("ppo-7b-1k", problems);
  request.workload.dataflow = preset_dataflow("ppo", KlPlace::reward, true);
  EXPECT_TRUE(problems.empty());
  return request;
}

std::string blocks_of(const Plan& plan) {
  std::map<std::vector<int>, std::string> blocks;
  for (const RolePlan& role : plan.roles) {
    std::string& names = blocks[role.ranks];
    names += (names.empty() ? "" : "+") + std::string(name_of(role.role));
  }
  std::string text;
  for (const auto& [ranks, names] : blocks) {
    text += (text.empty() ? "" : " | ") + names + " on " + std::to_string(ranks.size());
  }
  return text;
}

TEST(Validation, HybridFlowsBestPlacements) {
  const std::vector<Case> cases = {
      {"7B", "7B", 16, "colocated", {}},
      {"13B", "13B", 32, "colocated", {}},
      {"34B", "34B", 64, "colocated", {}},
      {"34B", "34B", 96, "actor+reference|critic+reward", {}},
  };
  std::printf("HybridFlow's best placements (PPO, A100) against the search\n");
  int reproduced = 0, near = 0;
  for (const Case& each : cases) {
    Problems problems;
    PlanRequest request = request_of(each);
    // What HybridFlow searches (App. C): no context parallelism, no virtual stages.
    std::vector<std::string> settings;
    for (const char* role : {"actor", "critic", "reference", "reward"}) {
      settings.push_back(std::string(role) + ".cp=1");
      settings.push_back(std::string(role) + ".vpp=1");
    }
    request.fixed = parse_settings(settings, problems);
    const auto best = make_plan(request, problems);
    PlanRequest fixed = request;
    settings.push_back("placement=" + each.published);
    settings.insert(settings.end(), each.sizes.begin(), each.sizes.end());
    fixed.fixed = parse_settings(settings, problems);
    const auto theirs = make_plan(fixed, problems);
    ASSERT_TRUE(best) << (problems.empty() ? "" : to_string(problems[0]));
    const bool of_verl = theirs.has_value();
    if (!of_verl) {
      ASSERT_EQ(problems.size(), 1U);
      ASSERT_EQ(problems[0].place, "placement") << to_string(problems[0]);
    }
    const Plan* ours = std::get_if<Plan>(&*best);
    ASSERT_NE(ours, nullptr) << each.actor << " on " << each.gpus;
    const Plan* published = of_verl ? std::get_if<Plan>(&*theirs) : nullptr;
    const std::string taken = blocks_of(*ours);
    std::printf("  %4s/%-4s %4d GPUs  published %-34s", each.actor.c_str(), each.critic.c_str(),
                each.gpus, each.published.c_str());
    if (published == nullptr) {
      std::printf(" is none of verl's; ours %s, %.1f s\n", taken.c_str(), ours->prediction.step_s);
      continue;
    }
    const double over = published->prediction.step_s / ours->prediction.step_s - 1;
    std::printf(" %7.1f s (%+5.1f %%)  ours %s, %.1f s\n", published->prediction.step_s, 100 * over,
                taken.c_str(), ours->prediction.step_s);
    EXPECT_GE(over, -1e-9);  // the search is exact
    reproduced += blocks_of(*published) == taken ? 1 : 0;
    near += over < 0.10 ? 1 : 0;
  }
  std::printf("  %d of %zu taken by the search, %d within 10 %% of its choice\n", reproduced,
              cases.size(), near);
  EXPECT_EQ(reproduced, 3);
}

}  // namespace
}  // namespace tessera
