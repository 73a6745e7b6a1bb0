#include "cli/inputs.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "cli/numbers.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/spec_document.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/repriced.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/plan_constants.h"
#include "planner/request/risk.h"

namespace tessera {
namespace {

std::string what_runs(const Plan& plan) {
  std::string text = plan.workload.algorithm + ": " + describe_layouts(plan);
  for (const PlannedReshard& pair : plan.reshard) {
    text += "; reshard " + std::string(name_of(pair.mode));
  }
  return text;
}

}  // namespace

CLI::Option* add_risk(CLI::App& command, double& risk) {
  return command.add_option_function<std::string>(
      "--risk",
      [&risk](const std::string& word) {
        Problems problems;
        risk = risk_from(word, problems);
        if (!problems.empty()) throw Error(std::move(problems));
      },
      "Probability of running out of memory that a plan may have, 0.000001 to 0.5; default: 0.02");
}

CLI::Option* add_nodes(CLI::App& command, std::int64_t& nodes) {
  return command
      .add_option("--nodes", nodes, "Nodes of the cluster that are used; default: all that it has")
      ->check(whole_number(1, 1 << 30));
}

ClusterSpec with_nodes(ClusterSpec cluster, std::int64_t nodes) {
  if (nodes == 0 || nodes == cluster.nodes) return cluster;
  if (!cluster.groups.empty()) {
    throw Error(ExitCode::bad_input,
                {Problem{.file = "--nodes",
                         .place = "",
                         .found = std::to_string(nodes),
                         .expected = std::to_string(cluster.nodes) +
                                     ", as the cluster says how many nodes of each GPU type it has",
                         .hint = "write a cluster file with other numbers"}});
  }
  cluster.nodes = nodes;
  Problems problems;
  const Document text{.file = "the cluster with --nodes " + std::to_string(nodes),
                      .root = to_node(cluster)};
  ObjectReader reader(text, problems);
  cluster_from(reader, Defaults::refused);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return cluster;
}

Plan read_plan_or_throw(const std::string& file) {
  Problems problems;
  std::optional<Plan> plan = read_plan(file, problems);
  if (!plan) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(plan);
}

namespace {

bool same_kind(const std::string& type, const std::string& device) {
  const auto shipped = shipped_calibration({.name = type});
  return type == device || (shipped && shipped == shipped_calibration({.name = device}));
}

// Several GPU types: the file's constants for pools on its device alone, the shipped ones for the
// others.
Calibration with_measured(const ClusterSpec& cluster, const Calibration& measured,
                          const std::string& where) {
  Calibration all = calibration_for(cluster, "");
  bool used = false;
  std::string types;
  const auto views = pool_views(cluster);
  for (std::size_t view = 1; view < views.size(); ++view) {
    if (!views[view].single()) continue;
    const std::string type = type_name(cluster, static_cast<int>(view));
    types += (types.empty() ? "" : ", ") + type;
    if (!same_kind(type, measured.device)) continue;
    all.views[view - 1] = measured;
    used = true;
  }
  if (!used) {
    throw Error(ExitCode::bad_input, {Problem{.file = where,
                                              .place = "device",
                                              .found = "'" + measured.device + "'",
                                              .expected = "a GPU type of the cluster: " + types}});
  }
  all.name += ", measured: " + measured.name;
  return all;
}

}  // namespace

Calibration calibration_for(const ClusterSpec& cluster, const std::string& where) {
  Problems problems;
  std::optional<Calibration> calibration = where.empty()
                                               ? calibration_for_cluster(cluster, problems)
                                               : find_calibration(where, problems);
  if (!calibration) throw Error(ExitCode::bad_input, std::move(problems));
  if (!where.empty() && !cluster.groups.empty()) {
    return with_measured(cluster, *std::move(calibration), where);
  }
  if (!where.empty() && !same_kind(cluster.device.name, calibration->device)) {
    std::fprintf(
        stderr,
        "tessera: warning: the calibration %s was measured on '%s', the cluster's GPUs are "
        "'%s'\n",
        where.c_str(), calibration->device.c_str(), cluster.device.name.c_str());
  }
  return *std::move(calibration);
}

Calibration calibration_of(const Plan& plan, const std::string& named) {
  if (!named.empty()) return calibration_for(plan.cluster, named);
  Problems problems;
  auto constants = constants_of(plan, problems);
  if (!constants) throw Error(ExitCode::bad_input, std::move(problems));
  if (!constants->other.empty()) {
    std::fprintf(stderr, "tessera: warning: %s\n", constants->other.c_str());
  }
  return std::move(constants->calibration);
}

int code_of_fit(const Plan& plan, const Calibration& calibration, const char* command) {
  if (certified(plan) == Certified::yes) return 0;
  const Repriced priced = repriced(plan, calibration);
  if (!priced.agrees()) {
    std::fprintf(stderr,
                 "%s: warning: the plan is %s and its predictions are not its own (tessera "
                 "explain)\n",
                 command, priced.why.c_str());
  }
  if (priced.pricing.fits) return 0;
  std::fprintf(stderr, "%s: warning: %s\n", command, priced.pricing.notes.back().c_str());
  return static_cast<int>(ExitCode::infeasible);
}

std::optional<std::string> plan_file_of_run(const std::string& run) {
  const std::filesystem::path where(run);
  const bool folder = std::filesystem::is_directory(where);
  if (!folder && where.filename() != "metrics.jsonl") return std::nullopt;
  const std::filesystem::path file = (folder ? where : where.parent_path()) / "plan.json";
  if (!std::filesystem::is_regular_file(file)) return std::nullopt;
  return file.string();
}

void refuse_run_of_other_plan(const Plan& plan, const std::string& file, const std::string& run) {
  const std::optional<std::string> ran_file = plan_file_of_run(run);
  if (!ran_file) return;
  const Plan ran = read_plan_or_throw(*ran_file);
  if (run_digest(ran) == run_digest(plan)) return;
  throw Error(ExitCode::bad_input,
              {Problem{.file = run,
                       .place = "plan.json",
                       .found = "a run of another plan (" + what_runs(ran) + ")",
                       .expected = "a run of " + file + " (" + what_runs(plan) + ")",
                       .hint = "name the run's own plan.json"}});
}

}  // namespace tessera
