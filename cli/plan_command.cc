// tessera plan: the search, alone or over variations of the settings.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/names.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "planner/engines/engine.h"
#include "planner/explain/front.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/infeasible_json.h"
#include "planner/explain/memory_cap.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/explain/type_reasons.h"
#include "planner/explain/variations.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/request_reader.h"
#include "planner/request/solution.h"

namespace tessera {
namespace {

struct PlanOptions {
  RequestNames names;
  std::int64_t nodes = 0;  // 0 = the cluster's
  std::string calibration, output;
  std::string from;             // a plan whose question is asked again
  double memory_limit_gib = 0;  // 0 = what the devices have
  std::string transport;        // of the reshard; empty = automatic
  std::int64_t bucket_mib = 0;  // of the reshard; 0 = the engine's own
  std::vector<std::string> varied;
  bool json = false, pareto = false;
};

/// The question that a plan answers, with the settings that are fixed now.
PlanRequest request_of_plan(const PlanOptions& options) {
  Problems problems;
  const Plan plan = read_plan_or_throw(options.from);
  PlanRequest request = request_of(plan, calibration_of(plan, options.calibration));
  request.fixed = parse_settings(options.names.fixed, problems);
  request.one_step_off = request.one_step_off || options.names.one_step_off;
  if (options.names.log_probs) request.choices.log_probs = ToldLogProbs::told;
  if (options.names.lora.used()) set_adapters(request, options.names.lora);
  if (options.names.mtp) request.mtp[Role::actor] = *options.names.mtp;
  if (!problems.empty()) throw Error(std::move(problems));
  return request;
}

PlanRequest named_request(const PlanOptions& options) {
  if (options.names.model.empty() || options.names.cluster.empty() ||
      options.names.workload.empty()) {
    throw Error(ExitCode::usage, "plan needs --model, --cluster and --workload, or --from");
  }
  Problems problems;
  PlanRequest request = read_request(options.names, problems);
  if (!problems.empty()) throw Error(std::move(problems));
  request.cluster = with_nodes(std::move(request.cluster), options.nodes);
  request.calibration = calibration_for(request.cluster, options.calibration);
  return request;
}

// Engines that gather whole tensors have no transports to choose from, but buckets.
ReshardTravel travel_from(const PlanOptions& options, const std::string& engine) {
  ReshardTravel travel{.transport = ReshardTransport::automatic,
                       .bucket = Bytes{options.bucket_mib << 20}};
  if (options.transport.empty()) return travel;
  const auto transport = transport_from(options.transport);
  if (!transport) {
    throw Error({Problem{.file = "--reshard-transport",
                         .place = "",
                         .found = "'" + options.transport + "'",
                         .expected = joined(transport_names())}});
  }
  travel.transport = *transport;
  if (travel.transport != ReshardTransport::automatic && engine_named(engine).weights.gather) {
    throw Error({Problem{.file = "--reshard-transport",
                         .place = "",
                         .found = "'" + options.transport + "' with engine " + engine,
                         .expected = "an engine that moves what is missing: " + engine +
                                     " gathers whole tensors in its own way"}});
  }
  return travel;
}

PlanRequest request_from(const PlanOptions& options) {
  PlanRequest request = options.from.empty() ? named_request(options) : request_of_plan(options);
  request.reshard = travel_from(options, request.engine);
  request.tessera_version = TESSERA_VERSION;
  request.created = utc_now();
  if (options.memory_limit_gib > 0) {
    cap_memory(request, from_gib(options.memory_limit_gib));
  }
  return request;
}

// Settings that both options take are refused under the name of --fix.
[[noreturn]] void refuse_variations(Problems problems) {
  for (Problem& problem : problems) {
    if (problem.file == "--fix") problem.file = "--vary";
  }
  throw Error(std::move(problems));
}

void plan_varied(const PlanOptions& options, const PlanRequest& request) {
  Problems problems;
  const std::vector<Variation> variations = parse_variations(options.varied, problems);
  if (!problems.empty()) refuse_variations(std::move(problems));
  const auto plans = [&] {
    const Progress progress("planning");
    return plan_variations(request, variations, problems);
  }();
  if (!plans) refuse_variations(std::move(problems));
  std::printf("%s", (options.json ? to_json(*plans) : describe(*plans)).c_str());
  const Plan* best = best_of(*plans);
  if (best == nullptr) throw Error(ExitCode::infeasible, "no variation has a feasible plan");
  if (!options.output.empty()) {
    write_plan(*best, options.output);
    std::fprintf(stderr, "plan: the best by %s is written to %s\n", options.names.objective.c_str(),
                 options.output.c_str());
  }
}

void plan(const PlanOptions& options) {
  const PlanRequest request = request_from(options);
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
    std::fprintf(stderr, "plan: the best by %s is written to %s\n", options.names.objective.c_str(),
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
  std::printf("%s", (options.json ? to_json(found)
                                  : describe(found, &request.calibration) +
                                        describe_type_reasons(found, request.calibration))
                        .c_str());
  if (!options.output.empty())
    std::fprintf(stderr, "plan: written to %s\n", options.output.c_str());
}

void add_adapters(CLI::App& command, Lora& lora) {
  CLI::Option* rank =
      command
          .add_option("--lora-rank", lora.rank,
                      "Rank of low-rank adapters (LoRA) that the actor trains beside its weights, "
                      "which stay as they are")
          ->check(whole_number(1, 1 << 16));
  command
      .add_option("--lora-alpha", lora.alpha,
                  "Scale of the adapters, divided by their rank; "
                  "default: 16")
      ->needs(rank);
  command
      .add_option("--lora-targets", lora.targets,
                  "Matrices with adapters, by their modules' names (q_proj); default: all of the "
                  "layers' but routers and experts")
      ->needs(rank);
}

void add_log_probs(CLI::App& command, bool& told) {
  command.add_flag("--rollout-log-probs", told,
                   "Servers of verl tell the log-prob of each token that they draw, as rollout "
                   "correction and training/rollout_probs_diff_* need; default: where no "
                   "old_log_prob is computed");
}

void add_prediction_layers(CLI::App& command, std::optional<MtpUse>& mtp) {
  std::vector<std::string> names;
  for (const MtpUse use : kEveryMtpUse) names.emplace_back(name_of(use));
  command
      .add_option_function<std::string>(
          "--mtp", [&mtp](const std::string& name) { mtp = mtp_use_from(name); },
          "What the actor does with the model's layers of multi-token prediction: " +
              joined(names) + "; default: left_out")
      ->check(CLI::IsMember(names));
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Search the best layouts and placement");
  auto options = std::make_shared<PlanOptions>();
  CLI::Option* model = command->add_option("--model", options->names.model,
                                           "Hugging Face folder, config.json or preset");
  command->add_option("--critic", options->names.critic, "Critic's model; default: the workload's");
  command->add_option("--reward", options->names.reward, "Reward model; default: the workload's");
  CLI::Option* cluster =
      command->add_option("--cluster", options->names.cluster, "Cluster YAML or preset");
  CLI::Option* nodes = add_nodes(*command, options->nodes);
  CLI::Option* workload =
      command->add_option("--workload", options->names.workload, "Workload YAML or preset");
  command
      ->add_option("--from", options->from,
                   "plan.json: its models, cluster, workload, engine and objective are planned "
                   "for again")
      ->excludes(model, cluster, nodes, workload);
  command
      ->add_option("--memory-limit-gib", options->memory_limit_gib,
                   "GiB of every device that the plan may fill, its reserve included")
      ->check(memory_in_gib());
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset; default: the one shipped for the GPU type");
  command->add_option("--fix", options->names.fixed,
                      "Choices that the plan must keep: ROLE.FIELD=VALUE, ROLE.gpu=TYPE or "
                      "placement='actor+reference | critic'");
  CLI::Option* vary =
      command->add_option("--vary", options->varied,
                          "ROLE.FIELD=VALUE,VALUE ...: a table of the best plan of each variation");
  command->add_option("--engine", options->names.engine,
                      "Engine whose abilities limit the search: " + engine_choices() +
                          " (the best of all of them, and of everything that can be priced); "
                          "default: tessera");
  command->add_option("--reshard-transport", options->transport,
                      "How the reshard's bytes travel: " + joined(transport_names()));
  command
      ->add_option("--reshard-bucket-mib", options->bucket_mib,
                   "Bound of what a rank sends or receives at once in the reshard; default: the "
                   "engine's own")
      ->check(whole_number(1, 1 << 20));
  command->add_option("-o,--output", options->output, "Where to write plan.json");
  command->add_option("--objective", options->names.objective,
                      "What the best plan is best in: " + joined(objective_names()) +
                          " (the fewest that fit); default: step_s");
  add_risk(*command, options->names.risk);
  command->add_flag("--one-step-off", options->names.one_step_off,
                    "A rollout with GPUs of its own may generate with the weights of the step "
                    "before, which is another algorithm");
  add_log_probs(*command, options->names.log_probs);
  add_adapters(*command, options->names.lora);
  add_prediction_layers(*command, options->names.mtp);
  command
      ->add_flag("--pareto", options->pareto,
                 "Print the best step of every number of GPUs instead of one plan")
      ->excludes(vary);
  command->add_flag("--json", options->json, "Print the plan as JSON");
  command->footer(planning_names());
  command->callback([options] { plan(*options); });
}

}  // namespace tessera
