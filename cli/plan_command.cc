// tessera plan: the search, alone or over variations of the settings.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "cost_models/spec/utc_now.h"
#include "planner/plan/model_source.h"
#include "planner/plan/plan_json.h"
#include "planner/search/infeasible_json.h"
#include "planner/search/report.h"
#include "planner/search/search.h"
#include "planner/search/type_reasons.h"
#include "planner/search/variations.h"

namespace tessera {
namespace {

struct PlanOptions {
  std::string model, critic, reward, cluster, workload, calibration, engine = "tessera", output;
  std::string objective = "step_s";
  std::vector<std::string> fixed, varied;
  bool json = false, pareto = false;
};

PlanRequest read_request(const PlanOptions& options) {
  Problems problems;
  PlanRequest request;
  request.engine = options.engine;
  request.fixed = parse_settings(options.fixed, problems);
  if (const auto objective = objective_from(options.objective)) {
    request.objective = *objective;
  } else {
    const std::vector<std::string> known = {"step_s", "tokens_per_s_per_gpu", "cost", "gpus"};
    problems.push_back({"--objective", "", "'" + options.objective + "'",
                        "step_s, tokens_per_s_per_gpu, cost or gpus",
                        did_you_mean(options.objective, known)});
  }
  request.tessera_version = TESSERA_VERSION;
  request.created = utc_now();
  const auto add_model = [&](const char* key, const std::string& where) {
    if (where.empty()) return;
    if (std::optional<ModelSource> model = read_model_source(where, problems)) {
      request.models.emplace(key, *std::move(model));
    }
  };
  add_model("actor", options.model);
  if (std::optional<ClusterSpec> cluster = read_cluster_spec(options.cluster, problems)) {
    request.cluster = *std::move(cluster);
  }
  if (std::optional<Workload> workload = read_workload(options.workload, problems)) {
    request.workload = *std::move(workload);
    add_model("critic", options.critic.empty() ? request.workload.critic_model : options.critic);
    add_model("reward", options.reward.empty() ? request.workload.reward_model : options.reward);
  }
  if (!problems.empty()) throw Error(std::move(problems));
  request.calibration = calibration_for(request.cluster, options.calibration);
  return request;
}

// The fastest plan of all combinations, for -o.
const Plan* best_of(const std::vector<VariedPlan>& plans) {
  const Plan* best = nullptr;
  for (const VariedPlan& varied : plans) {
    const Plan* found = std::get_if<Plan>(&varied.outcome);
    if (found != nullptr &&
        (best == nullptr || found->prediction.step_s < best->prediction.step_s)) {
      best = found;
    }
  }
  return best;
}

void plan_varied(const PlanOptions& options, const PlanRequest& request) {
  Problems problems;
  const std::vector<Variation> variations = parse_variations(options.varied, problems);
  if (!problems.empty()) throw Error(std::move(problems));
  const auto plans = [&] {
    const Progress progress("planning");
    return plan_variations(request, variations, problems);
  }();
  if (!plans) throw Error(std::move(problems));
  std::printf("%s", (options.json ? to_json(*plans) : describe(*plans)).c_str());
  const Plan* best = best_of(*plans);
  if (best == nullptr) throw Error(ExitCode::infeasible, "no variation has a feasible plan");
  if (!options.output.empty()) {
    write_plan(*best, options.output);
    std::fprintf(stderr, "plan: the fastest is written to %s\n", options.output.c_str());
  }
}

void plan(const PlanOptions& options) {
  const PlanRequest request = read_request(options);
  if (!options.varied.empty()) return plan_varied(options, request);
  Problems problems;
  if (options.pareto) {
    Planner planner(request);
    const std::vector<Solution> front = [&] {
      const Progress progress("planning every number of GPUs");
      return planner.pareto(request.fixed, problems);
    }();
    if (!problems.empty()) throw Error(std::move(problems));
    if (front.empty()) throw Error(ExitCode::infeasible, "no number of GPUs has a feasible plan");
    std::printf("%s", (options.json ? front_json : describe_front)(front, request).c_str());
    if (options.output.empty()) return;
    const auto best = planner.plan(request.fixed, request.objective, problems);
    if (!best) throw Error(std::move(problems));
    write_plan(std::get<Plan>(*best), options.output);
    std::fprintf(stderr, "plan: the best by %s is written to %s\n", options.objective.c_str(),
                 options.output.c_str());
    return;
  }
  const std::optional<PlanOutcome> outcome = [&] {
    const Progress progress("planning");
    return make_plan(request, problems);
  }();
  if (!outcome) throw Error(std::move(problems));
  if (const Infeasible* infeasible = std::get_if<Infeasible>(&*outcome)) {
    if (options.json) std::printf("%s", to_json(*infeasible).c_str());
    throw Error(ExitCode::infeasible, describe(*infeasible));
  }
  const Plan& found = std::get<Plan>(*outcome);
  if (!options.output.empty()) write_plan(found, options.output);
  std::printf("%s",
              (options.json ? to_json(found)
                            : describe(found, usable_memory(request.cluster, request.calibration)) +
                                  describe_type_reasons(found, request.calibration))
                  .c_str());
  if (!options.output.empty())
    std::fprintf(stderr, "plan: written to %s\n", options.output.c_str());
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Search the best mapping and placement");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("--model", options->model, "Hugging Face folder, config.json or preset")
      ->required();
  command->add_option("--critic", options->critic, "Critic's model; default: the workload's");
  command->add_option("--reward", options->reward, "Reward model; default: the workload's");
  command->add_option("--cluster", options->cluster, "Cluster YAML or preset")->required();
  command->add_option("--workload", options->workload, "Workload YAML or preset")->required();
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset; default: the one shipped for the device");
  command->add_option("--fix", options->fixed,
                      "ROLE.FIELD=VALUE ..., ROLE.gpu=TYPE or placement=...");
  CLI::Option* vary = command->add_option("--vary", options->varied,
                                          "ROLE.FIELD=VALUE,VALUE ...: a table of best plans");
  command->add_option("--engine", options->engine, "Engine whose abilities limit the search");
  command->add_option("-o,--output", options->output, "Where to write plan.json");
  command->add_option("--objective", options->objective,
                      "step_s (default), tokens_per_s_per_gpu, cost or gpus (the fewest that fit)");
  command
      ->add_flag("--pareto", options->pareto,
                 "Print the best step of every number of GPUs instead of one plan")
      ->excludes(vary);
  command->add_flag("--json", options->json, "Print the plan as JSON");
  command->callback([options] { plan(*options); });
}

}  // namespace tessera
