// Scripts of verl whose micro-batches count sequences: cut as verl cuts them, whatever is known of
// their lengths, in the plan's price and in a simulated step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/plan/plan.h"
#include "simulator/engine/plan_tasks.h"
#include "simulator/engine/simulate.h"

namespace tessera {
namespace {

constexpr int kReplicas = 8, kPrompts = 64, kSamples = 8, kMiniBatches = 2;
constexpr std::int64_t kResponse = 1024;

Calibration h100() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

// GRPO on eight GPUs: 64 prompts, eight responses each, two mini-batches.
std::string script(int update, int scoring, std::int64_t longest_prompt) {
  const std::string log_prob = "log_prob_micro_batch_size_per_gpu=" + std::to_string(scoring) + " ";
  return "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
         "actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.rollout.n=8 "
         "actor_rollout_ref.actor.use_kl_loss=True "
         "actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct "
         "actor_rollout_ref.rollout.tensor_model_parallel_size=1 data.max_prompt_length=" +
         std::to_string(longest_prompt) + " data.max_response_length=" + std::to_string(kResponse) +
         " actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=" + std::to_string(update) +
         " actor_rollout_ref.rollout." + log_prob + "actor_rollout_ref.ref." + log_prob + "\n";
}

Plan plan_of(const std::string& text, double prompt_mean, double response_mean) {
  Problems problems;
  ImportOptions options{.cluster = *read_cluster_spec("h100-8", problems)};
  if (prompt_mean > 0) options.prompt_mean = prompt_mean;
  if (response_mean > 0) options.response_mean = response_mean;
  auto imported = import_config(text, "a.sh", options, problems);
  EXPECT_TRUE(imported) << Error(ExitCode::bad_input, problems).what();
  if (!imported) return {};
  price(imported->plan, h100(), imported->memory_share);
  return std::move(imported->plan);
}

// verl 0.9.1 without dynamic batches (prepare_micro_batches): a replica's sequences as they come,
// so many to a part.
std::int64_t parts_of(std::int64_t sequences, std::int64_t each) {
  std::int64_t parts = 0;
  for (std::int64_t first = 0; first < sequences; first += each) ++parts;
  return parts;
}

// Forward passes of the first rank in a phase.
std::int64_t forward_passes(const Plan& plan, Phase phase) {
  const IterationTasks tasks = build_iteration(plan, h100(), {});
  return std::count_if(tasks.graph.tasks.begin(), tasks.graph.tasks.end(), [&](const Task& task) {
    return task.phase == phase && task.name.starts_with("F") && !task.ranks.empty() &&
           task.ranks.front() == 0;
  });
}

struct Lengths {
  double prompt_mean, response_mean;  // 0: not known
};
constexpr Lengths kKnown[] = {{0, 0}, {372, 0}, {60, 0}, {0, 300}, {60, 300}, {1024, 700}};

TEST(CountedMicroBatches, AreAsManyAsVerlCutsWhateverTheLengths) {
  for (const int each : {1, 2, 4, 16}) {
    const std::string text = script(each, 2 * each, 1024);
    for (const Lengths& known : kKnown) {
      const Plan plan = plan_of(text, known.prompt_mean, known.response_mean);
      ASSERT_FALSE(plan.roles.empty());
      const std::int64_t all = kPrompts * kSamples / kReplicas;
      const std::string what = std::to_string(each) + " of prompts of " +
                               std::to_string(known.prompt_mean) + ", responses of " +
                               std::to_string(known.response_mean);
      EXPECT_EQ(forward_passes(plan, Phase::update_actor),
                kMiniBatches * parts_of(all / kMiniBatches, each))
          << what;
      EXPECT_EQ(forward_passes(plan, Phase::old_log_prob), parts_of(all, std::int64_t{2} * each))
          << what;
      EXPECT_EQ(forward_passes(plan, Phase::ref), parts_of(all, std::int64_t{2} * each)) << what;
    }
  }
}

/// Two ways to say the same lengths: the mean beside a longer limit, and a limit that all reach.
TEST(CountedMicroBatches, CostWhatThoseOfPromptsAtTheMeanCost) {
  for (const int each : {1, 4, 16}) {
    for (const std::int64_t mean : {60, 372, 1000}) {
      const Plan apart = plan_of(script(each, each, 1024), static_cast<double>(mean), 0);
      const Plan alike = plan_of(script(each, each, mean), 0, 0);
      for (const Phase phase : {Phase::old_log_prob, Phase::ref, Phase::update_actor}) {
        EXPECT_NEAR(apart.prediction.phases_s.at(phase) / alike.prediction.phases_s.at(phase), 1,
                    1e-9)
            << each << " of " << mean << " " << name_of(phase);
      }
      const Batching& batching = apart.find(Role::actor)->batching;
      EXPECT_EQ(batching.update_sequences, each);
      EXPECT_GE(batching.update_tokens, 1024 + kResponse);
      EXPECT_GE(batching.update_tokens, each * (mean + kResponse));
      EXPECT_GE(apart.prediction.peak_bytes, alike.prediction.peak_bytes);
    }
  }
}

TEST(CountedMicroBatches, AreSimulatedAsTheyArePriced) {
  for (const int each : {1, 4, 16}) {
    for (const Lengths& known : kKnown) {
      const Plan plan = plan_of(script(each, each, 1024), known.prompt_mean, known.response_mean);
      const Simulation simulated = simulate(plan, h100());
      for (const Phase phase : {Phase::old_log_prob, Phase::ref, Phase::update_actor}) {
        EXPECT_NEAR(simulated.phases_s.at(phase) / plan.prediction.phases_s.at(phase).value, 1,
                    0.03)
            << each << " " << known.prompt_mean << " " << known.response_mean << " "
            << name_of(phase);
      }
    }
  }
}

/// The script's limits come back, where the plan counts the mean.
TEST(CountedMicroBatches, AreExportedWithTheScriptsLongestPrompt) {
  const Plan plan = plan_of(script(4, 4, 1024), 372, 300);
  EXPECT_EQ(plan.workload.prompt_tokens, 372);
  EXPECT_EQ(plan.workload.longest_prompt(), 1024);
  for (const ExportTarget& target : every_export_target()) {
    if (target.name != plan.engine) continue;
    Problems problems;
    const auto made = export_plan(plan, target, {}, problems);
    ASSERT_TRUE(made) << Error(ExitCode::bad_input, problems).what();
    const auto job = std::find_if(made->files.begin(), made->files.end(),
                                  [](const ExportedFile& file) { return file.executable; });
    ASSERT_NE(job, made->files.end());
    EXPECT_THAT(job->text, testing::HasSubstr("data.max_prompt_length=1024"));
    EXPECT_THAT(job->text, testing::HasSubstr("rollout.max_model_len=2048"));
    const auto again = import_config(job->text, "job.sh", {.cluster = plan.cluster}, problems);
    ASSERT_TRUE(again) << Error(ExitCode::bad_input, problems).what();
    EXPECT_EQ(again->plan.workload.longest_prompt(), 1024);
    return;
  }
  FAIL() << "no target " << plan.engine;
}

}  // namespace
}  // namespace tessera
