// Commands of vLLM's and SGLang's servers as plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/planner.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/request/request.h"
#include "tests/planner/interop/imported.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(Import, ReadsTheServersOfAnExport) {
  for (const ExportTarget& target : {target_of("vllm"), target_of("sglang")}) {
    RandomPlans plans("verl", 79);
    for (int i = 0; i < 20; ++i) {
      const Plan plan = plans.next();
      const RolePlan& rollout = *plan.find(Role::rollout);
      Problems problems;
      const auto made = export_plan(plan, target, {}, problems);
      ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
      const Imported back = must_import(made->files[0].text, "serve.sh", on(plan));
      ASSERT_EQ(back.plan.roles.size(), 1U);
      const RolePlan& served = back.plan.roles[0];
      EXPECT_EQ(served.role, Role::rollout);
      EXPECT_EQ(served.layout.tp, rollout.layout.tp);
      EXPECT_EQ(served.layout.pp, rollout.layout.pp);
      EXPECT_EQ(served.layout.ep, rollout.layout.ep);
      EXPECT_EQ(served.batching.max_sequences, rollout.batching.max_sequences);
      EXPECT_EQ(back.plan.workload.prompt_tokens + back.plan.workload.response_tokens.max,
                plan.workload.prompt_tokens + plan.workload.response_tokens.max);
      EXPECT_EQ(back.plan.models.at("actor").spec.layers, plan.models.at("actor").spec.layers);
    }
  }
}

// Of the exported share of the memory the pool of the plan is left, in which as many live.
TEST(Import, APagedRolloutComesBackWithTheSequencesThatLiveInItsCache) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec("qwen2.5-7b", problems), "qwen2.5-7b", ""};
  request.cluster = *read_cluster_spec("h800-8", problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.workload.response_tokens = {3000, 0.5, 32768};
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  request.engine = "verl";
  const auto outcome = make_plan(request, problems);
  ASSERT_TRUE(outcome && std::holds_alternative<Plan>(*outcome));
  const Plan& plan = std::get<Plan>(*outcome);
  const RolePlan& rollout = *plan.find(Role::rollout);
  const std::int64_t slots = rollout.batching.max_sequences;
  // Cut by TP, a GPU holds that part of a token's 57,344 bytes.
  const std::int64_t token = 57344 / rollout.layout.tp;
  const std::int64_t longest =
      rollout.memory.at(Phase::gen).kv_cache.value / token / (1024 + 32768);
  EXPECT_GT(slots, 3 * longest);
  const auto made = export_plan(plan, target_of("verl"), {}, problems);
  ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  std::string script;
  for (const auto& file : made->files) {
    if (file.name == "run.sh") script = file.text;
  }
  EXPECT_THAT(script, HasSubstr("rollout.max_num_seqs=" + std::to_string(slots)));
  ImportOptions options = on(plan);
  options.response_mean = 3000;  // with the same spread
  Imported back = must_import(script, "run.sh", options);
  const Pricing pricing = price(back.plan, request.calibration, back.memory_share);
  EXPECT_TRUE(pricing.fits);
  EXPECT_EQ(back.plan.find(Role::rollout)->batching.max_sequences, slots);
  EXPECT_NEAR(
      back.plan.prediction.phases_s.at(Phase::gen) / plan.prediction.phases_s.at(Phase::gen), 1,
      1e-3);
}

TEST(Import, ReadsServerCommandsAndPricesThem) {
  Imported vllm = must_import(
      "vllm serve qwen2.5-7b -tp 4 --max-num-seqs=64 --max-model-len 4096 --dtype bfloat16\n",
      "a.sh", h800());
  EXPECT_EQ(vllm.plan.engine, "vllm");
  EXPECT_EQ(vllm.plan.roles[0].layout.tp, 4);
  EXPECT_EQ(vllm.plan.roles[0].ranks.size(), 4U);
  EXPECT_EQ(vllm.plan.roles[0].batching.max_sequences, 64);
  Problems problems;
  const auto calibration = find_calibration("h800", problems);
  EXPECT_TRUE(price(vllm.plan, *calibration).fits);
  EXPECT_GT(vllm.plan.prediction.step_s, 0);
  const Imported sglang = must_import(
      "python3 -m sglang.launch_server --model-path qwen2.5-7b --tp 2 --dp 2 "
      "--mem-fraction-static 0.8\n",
      "b.sh", h800());
  EXPECT_EQ(sglang.plan.engine, "sglang");
  EXPECT_EQ(sglang.plan.roles[0].layout.tp, 2);
  EXPECT_EQ(sglang.plan.roles[0].layout.dp, 2);
  // Eight GPUs, of which pairs cut attention; every expert on one GPU, 256 slots for all parts.
  const Imported parts = must_import(
      "python3 -m sglang.launch_server --model-path qwen3-30b-a3b --tp-size 8 --dp-size 4 "
      "--enable-dp-attention --ep-size 8 --max-running-requests 256\n",
      "e.sh", h800());
  EXPECT_EQ(parts.plan.roles[0].layout.tp, 2);
  EXPECT_EQ(parts.plan.roles[0].layout.dp, 4);
  EXPECT_EQ(parts.plan.roles[0].layout.ep, 8);
  EXPECT_EQ(parts.plan.roles[0].batching.max_sequences, 64);
  EXPECT_THAT(refusals("python3 -m sglang.launch_server --model-path qwen3-30b-a3b --tp-size 8 "
                       "--dp-size 3 --enable-dp-attention\n",
                       "f.sh")[0]
                  .expected,
              HasSubstr("a divisor of the tensor-parallel size 8"));
  const Problems unknown =
      refusals("vllm serve qwen2.5-7b --tensor-parallel-size $(nproc)\n", "c.sh");
  EXPECT_THAT(unknown[0].found, HasSubstr("$(nproc)"));
  EXPECT_THAT(refusals("vllm serve nobody\n", "d.sh")[0].found, HasSubstr("nobody"));
}

}  // namespace
}  // namespace tessera
