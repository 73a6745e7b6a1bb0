// Keys of verl's configuration that a run file cannot have here.
#include <gtest/gtest.h>

#include <string>

#include "executor/config/run_config.h"
#include "tests/executor/config/good_run.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

/// kGoodRun with `to` instead of `from`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGoodRun;
  return text.replace(text.find(from), from.size(), to);
}

/// A value that states what tessera does anyway is taken; any other is refused with the reason.
TEST(RunConfig, KeysThatOnlyVerlHasAreRefusedWithTheReasonUnlessTheyChangeNothing) {
  const auto judged = [](const std::string& from, const std::string& to) {
    Problems found;
    parse_run_config(changed(from, to), "run.yaml", sample_plan(), found);
    return found.empty() ? std::string() : found.size() == 1 ? found[0].hint : "several";
  };
  const std::string seed = "  seed: 7", clip = "    clip_ratio_high: 0.28";
  const std::string rollout = "  rollout:\n";
  EXPECT_EQ(judged(seed, seed + "\n  critic_warmup: 0\n  balance_batch: true"), "");
  EXPECT_EQ(judged(seed, seed + "\n  critic_warmup: 20"),
            "the actor is updated from the first step");
  EXPECT_EQ(judged(seed, seed + "\n  use_v1: true"), "there is one trainer");
  EXPECT_EQ(judged(clip, clip + "\n    fsdp_config: {param_offload: false}"), "");
  EXPECT_EQ(judged(clip, clip + "\n    use_fused_kernels: false"), "");
  EXPECT_EQ(judged(clip, clip + "\n    use_fused_kernels: true"), "tessera has kernels of its own");
  EXPECT_EQ(judged(rollout, rollout + "    free_cache_engine: true\n"), "");
  EXPECT_EQ(judged(rollout, rollout + "    engine_kwargs: {vllm: {}}\n"),
            "rollout.vllm.arguments go to vLLM");
  EXPECT_EQ(judged("actor_rollout_ref:\n", "actor_rollout_ref:\n  hybrid_engine: true\n"), "");
}

}  // namespace
}  // namespace tessera
