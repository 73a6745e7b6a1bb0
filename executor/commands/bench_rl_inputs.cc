#include "executor/commands/bench_rl_inputs.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "cost_models/fit/derived_calibration.h"
#include "executor/commands/rank_error.h"
#include "executor/data/digit_tasks.h"
#include "executor/data/init_model.h"
#include "executor/loop/share.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/memory_cap.h"
#include "planner/explain/planner.h"
#include "planner/plan/model_source.h"
#include "planner/plan/plan_json.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(Problems problems) {
  throw Error(ExitCode::bad_input, std::move(problems));
}

/// One node of as many devices as there are ranks.
ClusterSpec cluster_of(const RlOptions& options, bool gpu) {
  Problems problems;
  const std::string name = !options.cluster.empty() ? options.cluster
                           : gpu                    ? "h200-8"
                                                    : "local-cpu";
  ClusterSpec cluster = required(read_cluster_spec(name, problems), problems);
  cluster.gpus_per_node = options.start.ranks;
  cluster.nodes = 1;
  return cluster;
}

Workload workload_of(const RlOptions& options) {
  const std::string text =
      "version: 1\nalgorithm: grpo\nprompts_per_step: " + std::to_string(options.prompts) +
      "\nsamples_per_prompt: " + std::to_string(options.samples) +
      "\nprompt_tokens: " + std::to_string(options.digits + 2) +
      "\nresponse_tokens: {mean: " + std::to_string(options.response) +
      ", cv: 0, max: " + std::to_string(options.response) +
      "}\nmini_batches: 1\nepochs: 1\nkl: none\n";
  Problems problems;
  return required(parse_workload(text, "bench rl", problems), problems);
}

Plan plan_of(const RlOptions& options, const fs::path& model, bool gpu) {
  Problems problems;
  PlanRequest request;
  request.fixed = parse_settings(options.fixed, problems);
  request.models.emplace("actor", required(read_model_source(model, problems), problems));
  request.cluster = cluster_of(options, gpu);
  request.workload = workload_of(options);
  if (!problems.empty()) refuse(std::move(problems));
  request.calibration = required(calibration_for_cluster(request.cluster, problems), problems);
  if (options.memory_limit_gib > 0) cap_memory(request, from_gib(options.memory_limit_gib));
  request.tessera_version = TESSERA_VERSION;
  request.created = utc_now();
  PlanOutcome outcome = required(make_plan(request, problems), problems);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    throw Error(ExitCode::infeasible,
                infeasible->reasons.empty() ? "no plan" : infeasible->reasons.front());
  }
  return std::get<Plan>(std::move(outcome));
}

/// A map of these lines; nothing where there are none.
std::string section(const std::string& name, const std::vector<std::string>& lines) {
  std::string text = lines.empty() ? "" : name + ":\n";
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text;
}

}  // namespace

RlInputs::RlInputs(const RlOptions& options, const BenchSite& site) : host_(*site.host) {
  std::string name, plan;
  if (host_.rank() == 0) {
    std::string pattern = (fs::temp_directory_path() / "tessera-bench-rl-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error(ExitCode::io, "cannot make " + pattern);
    name = pattern;
    Problems problems;
    InitModelOptions init{.seed = 1, .digit_tokenizer = true, .weights = false};
    init.dtype = options.dtype != "auto" ? dtype_from(options.dtype)
                 : site.gpu()            ? DType::bf16
                                         : DType::fp32;
    init_model(options.model, fs::path(name) / "model", init, problems);
    make_data(DigitTask::reverse, options.digits, 4 * options.prompts, 1, "train",
              fs::path(name) / "prompts.jsonl", problems);
    if (!problems.empty()) refuse(std::move(problems));
    plan = to_json(plan_of(options, fs::path(name) / "model", site.gpu()));
  }
  folder_ = share_texts(host_, name).front();
  Problems problems;
  this->plan = required(parse_plan(share_texts(host_, plan).front(), "plan", problems), problems);
}

RlInputs::~RlInputs() {
  std::error_code ignored;
  if (host_.rank() == 0) fs::remove_all(folder_, ignored);
}

RunConfig RlInputs::config(const RlOptions& options, const Plan& plan) const {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.9e", options.learning_rate);
  std::string text = "data: {train_files: [" + (folder_ / "prompts.jsonl").string() +
                     "]}\nactor_rollout_ref:\n  actor: {entropy_coeff: 0.1, optim: {lr: " + rate +
                     "}}\n" + section("  rollout", options.rollout) +
                     "trainer: {seed: 1, random_weights: true, total_training_steps: " +
                     std::to_string(options.steps + 1) +
                     ", deterministic: " + (options.deterministic ? "true" : "false") + "}\n";
  text += section("reshard", options.settings);
  Problems problems;
  return required(parse_run_config(text, "bench rl", plan, problems), problems);
}

PromptSet RlInputs::prompts(const Plan& plan, const RunConfig& config) const {
  return read_prompt_set({.files = config.data.train_files,
                          .model = plan.models.at("actor").path,
                          .rewards = config.reward.functions,
                          .per_step = plan.workload.prompts_per_step,
                          .max_tokens = config.data.max_prompt_length,
                          .end_token = plan.model_of(Role::actor).eos_token,
                          .seed = config.data.seed,
                          .shuffle = config.data.shuffle});
}

}  // namespace tessera
