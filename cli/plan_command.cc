// tessera plan and explain: the search, and what a plan says about itself.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "planner/plan/plan_json.h"
#include "planner/search/report.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

struct PlanOptions {
  std::string model, critic, reward, cluster, workload, calibration, engine = "tessera", output;
  std::vector<std::string> fixed;
  bool json = false;
};

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

PlanRequest read_request(const PlanOptions& options) {
  Problems problems;
  PlanRequest request;
  request.engine = options.engine;
  request.fixed = parse_settings(options.fixed, problems);
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
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  request.calibration = calibration_for(request.cluster, options.calibration);
  return request;
}

void plan(const PlanOptions& options) {
  const PlanRequest request = read_request(options);
  Problems problems;
  const std::optional<PlanOutcome> outcome = make_plan(request, problems);
  if (!outcome) throw Error(ExitCode::bad_input, std::move(problems));
  if (const Infeasible* infeasible = std::get_if<Infeasible>(&*outcome)) {
    throw Error(ExitCode::infeasible, describe(*infeasible));
  }
  const Plan& found = std::get<Plan>(*outcome);
  if (!options.output.empty()) write_plan(found, options.output);
  std::printf("%s", (options.json ? to_json(found) : describe(found)).c_str());
  if (!options.output.empty()) std::fprintf(stderr, "plan: written to %s\n", options.output.c_str());
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
  command->add_option("--fix", options->fixed, "ROLE.FIELD=VALUE ... or placement=...");
  command->add_option("--engine", options->engine, "Engine whose abilities limit the search");
  command->add_option("-o,--output", options->output, "Where to write plan.json");
  command->add_flag("--json", options->json, "Print the plan as JSON");
  command->callback([options] { plan(*options); });
}

void add_explain(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "Say what limits a plan and what it beat");
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("plan", *file, "plan.json")->required();
  command->add_flag("--json", *json, "Print the plan as JSON");
  command->callback([file, json] {
    const Plan plan = read_plan_or_throw(*file);
    std::printf("%s", (*json ? to_json(plan) : describe(plan)).c_str());
  });
}

}  // namespace tessera
