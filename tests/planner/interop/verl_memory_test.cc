// Oracles: what a GRPO step of verl 0.9.1 allocated at most on one H100, and what torch's FSDP has
// in memory when its optimizer steps (tests/cost_models/fsdp_memory_oracle.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

const std::string kSource = TESSERA_SOURCE_DIR;

Json json_at(const std::string& file) {
  std::ifstream in(kSource + file);
  return Json::parse(in);
}

// The actor in its update, as benchmarks/peers/verl_micro_batches.sh with other settings has it.
MemoryUse updated(const std::vector<std::string>& settings) {
  const std::string file = kSource + "/benchmarks/peers/verl_micro_batches.sh";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  Problems problems;
  auto imported = import_config(
      text.str(), file,
      {.cluster = *read_cluster_spec("h100-8", problems), .settings = settings, .prompt_mean = 372},
      problems);
  EXPECT_TRUE(imported) << Error(ExitCode::bad_input, problems).what();
  if (!imported) return {};
  price(imported->plan, *find_calibration("h100", problems), imported->memory_share);
  return imported->plan.find(Role::actor)->memory.at(Phase::update_actor);
}

TEST(VerlMemory, IsWhatARunOnOneGpuAllocated) {
  const Json run = json_at("/benchmarks/results/h100-verl-one-gpu.json");
  const double measured = run.at("step_1").at("actor/perf/max_memory_allocated_gb");
  const MemoryUse use = updated({});
  EXPECT_NEAR(gib(use.total() - use.reserve) / measured, 1, 0.01);
}

/// FSDP casts its fp32 parameters for the passes alone, whether they are cut or not.
TEST(VerlMemory, HasNoCastWeightsWhereTheOptimizerSteps) {
  const std::string training = "actor_rollout_ref.actor.fsdp_config.";
  const Json fixture = json_at("/tests/fixtures/activations/fsdp_memory.json");
  const double elements = fixture.at("elements");
  int cases = 0;
  for (const Json& each : fixture.at("casts")) {
    const auto mesh = each.at("mesh").get<std::vector<int>>();
    std::vector<std::string> settings{
        "trainer.n_gpus_per_node=" + std::to_string(mesh.front() * (mesh.size() > 1 ? mesh[1] : 1)),
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
        training + "reshard_after_forward=" +
            (each.at("reshard_after_forward").get<bool>() ? "true" : "false")};
    if (mesh.size() > 1) settings.push_back(training + "fsdp_size=1");
    const MemoryUse use = updated(settings);
    const Json& live = each.at("before_step");
    EXPECT_EQ(live.at("bfloat16"), 0) << each;
    ++cases;
    const bool steps = use.workspace == use.optimizer / 2;  // its fullest moment is the step
    // ZeRO-2 of two ranks is fullest in a pass, with all cast weights.
    const bool half = mesh == std::vector{2} && !each.at("reshard_after_forward").get<bool>();
    EXPECT_EQ(steps, !half) << each;
    if (!steps) {
      EXPECT_GT(use.weights, 0) << each;
      continue;
    }
    const Bytes held = use.weights + use.master_weights + use.gradients + use.optimizer;
    const double ranks = mesh == std::vector{2} ? 2 : 1;  // that share the parameters
    EXPECT_EQ(held, use.optimizer * 2) << each;
    EXPECT_NEAR(live.at("float32").get<double>() * ranks / elements, 16, 0.01) << each;
  }
  EXPECT_EQ(cases, 12);
}

}  // namespace
}  // namespace tessera
