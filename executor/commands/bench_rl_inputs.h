// Inputs of `bench rl`: its options, and a model, prompts and a plan made from them.
//
// Made collectively over the site's host communicator; the folder ends with the value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/commands/bench_run.h"
#include "executor/config/run_config.h"
#include "executor/prompts/prompt_set.h"
#include "planner/plan/plan.h"

namespace tessera {

struct RlOptions {
  BenchStart start;
  std::string model = "qwen2.5-0.5b", cluster, dtype = "auto";
  std::vector<std::string> ways{"full", "minimal"};
  std::vector<std::string> fixed{"actor.tp=2", "actor.pp=1", "rollout.tp=1"};
  std::vector<std::string> settings;  // of the run: KEY: VALUE lines below `reshard`
  std::vector<std::string> rollout;   // the same below `actor_rollout_ref.rollout`
  std::int64_t prompts = 64, samples = 8, response = 256;
  int digits = 32, steps = 4;
  double memory_limit_gib = 0;  // of a device, that the plan may fill; 0 = what it has
  double learning_rate = 1e-4;
  bool deterministic = false;
};

/// A model without weights, which every rank draws for itself, and prompts in a folder that ends
/// with the bench, and the plan for them.
class RlInputs {
 public:
  RlInputs(const RlOptions& options, const BenchSite& site);
  ~RlInputs();
  RlInputs(const RlInputs&) = delete;

  RunConfig config(const RlOptions& options, const Plan& plan) const;
  PromptSet prompts(const Plan& plan, const RunConfig& config) const;
  const std::filesystem::path& folder() const { return folder_; }

  Plan plan;

 private:
  Communicator& host_;
  std::filesystem::path folder_;
};

}  // namespace tessera
