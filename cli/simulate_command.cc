// tessera simulate: the iteration of a plan in time.
#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/numbers.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/what_if.h"
#include "planner/plan/plan.h"
#include "simulator/engine/report.h"
#include "simulator/engine/sensitivity.h"
#include "simulator/engine/simulate.h"
#include "simulator/network/machine_settings.h"
#include "simulator/schedules/steady_state.h"

namespace tessera {
namespace {

struct SimulateOptions {
  std::string plan, calibration, trace;
  std::size_t trace_events = 400'000;
  SimulationOptions simulation;
  int seeds = 1;
  std::vector<std::string> set;  // constants, NAME=VALUE
  bool json = false, sensitivity = false, schedules = false;
};

void write_trace(const Simulation& simulation, const std::string& file, std::size_t most_events) {
  write_text_file(file, to_chrome_trace(simulation, most_events));
  std::fprintf(stderr, "simulate: trace written to %s (open it in https://ui.perfetto.dev)\n",
               file.c_str());
}

int simulate_plan(SimulateOptions& options) {
  const Plan stated = read_plan_or_throw(options.plan);
  Problems problems;
  check_reshard_digests(stated, options.plan, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  Calibration calibration = calibration_of(stated, options.calibration);
  Plan plan = stated;  // on the machine that was asked for
  MachineSettings& machine = options.simulation.machine;
  const auto machine_left = set_machine(plan.cluster, machine, options.set, problems);
  set_constants(calibration, set_nccl(plan.cluster, calibration, machine_left, problems), problems);
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  check_duration(plan, calibration, options.simulation.steps, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  if (options.sensitivity) {
    const auto sensitivities = step_sensitivities(plan, calibration);
    std::printf("%s", (options.json ? to_json(sensitivities) : to_text(sensitivities)).c_str());
    return code_of_fit(stated, calibration, "simulate");
  }
  if (options.schedules) {
    const auto compared = compare_schedules(plan, calibration, options.simulation, options.seeds);
    std::printf("%s", (options.json ? to_json(compared) : to_text(compared)).c_str());
    return code_of_fit(stated, calibration, "simulate");
  }
  const Simulation simulation = simulate(plan, calibration, options.simulation);
  if (!options.trace.empty()) {
    write_trace(simulation, options.trace, options.trace_events);
  }
  std::optional<StepSpread> spread;
  if (options.seeds > 1) {
    spread = spread_over_draws(plan, calibration, options.simulation, options.seeds);
  }
  const std::string text = options.json ? to_json(simulation, plan, calibration, spread)
                                        : to_text(simulation, plan, calibration, spread);
  std::printf("%s", text.c_str());
  return code_of_fit(stated, calibration, "simulate");
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("simulate", "Run a plan's iteration in time");
  auto options = std::make_shared<SimulateOptions>();
  command->add_option("plan", options->plan, "plan.json")->required();
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset; default: the plan's");
  command->add_option("--seed", options->simulation.seed, "Of the drawn response lengths")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  command
      ->add_option("--seeds", options->seeds,
                   "Draws of the response lengths, this seed's and those of the next: what the "
                   "step is in a tenth, half and nine tenths of them")
      ->check(CLI::Range(1, 10'000));
  command->add_option("--steps", options->simulation.steps, "Iterations, each with its own lengths")
      ->check(CLI::Range(1, 1000));
  command->add_option("--trace", options->trace, "Where to write a trace for Perfetto");
  command
      ->add_option("--trace-events", options->trace_events,
                   "Most events of the trace; 0 = every operation of every rank. Beyond them, "
                   "operations of a phase that start in the same window of time share one slice, "
                   "whose arguments state their number, busy time and bytes; of the memory the "
                   "fullest moment of each window stays")
      ->capture_default_str();
  command->add_option("--set", options->set,
                      "NAME=VALUE: another value of a constant of the calibration, of one GPU "
                      "type among several 'TYPE: NAME=VALUE'; of a table or a collective's curve "
                      "a factor of its time; of the network nic_bytes_per_s, nics_per_node, "
                      "oversubscription, nodes_per_leaf, rails, of what GPUs of a node share "
                      "gpus_per_switch, gb_s_per_switch_one_way, gpus_per_socket, "
                      "gb_s_per_socket_one_way; lost_nics/NODE=CARDS, "
                      "slow_rank/RANK=FACTOR; NCCL_ALGO and NCCL_PROTO, one of NCCL's names each");
  CLI::Option* const sensitivity = command->add_flag(
      "--sensitivity", options->sensitivity, "Print which constants move the step most instead");
  for (const char* name : {"--seed", "--seeds", "--steps", "--trace", "--trace-events"}) {
    sensitivity->excludes(command->get_option(name));
  }
  CLI::Option* const schedules = command->add_flag(
      "--schedules", options->schedules,
      "Print what a step takes in the long run where steps overlap more or less, and what it waits "
      "for, instead");
  for (const char* name : {"--steps", "--trace", "--trace-events", "--sensitivity"}) {
    schedules->excludes(command->get_option(name));
  }
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const int code = simulate_plan(*options);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
