#include "planner/interop/export.h"

#include <algorithm>

#include "planner/engines/capabilities.h"
#include "planner/interop/export_files.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kEveryExportTarget.size()> kNames{
    "verl",     "verl-megatron", "megatron",   "vllm", "sglang",
    "torchrun", "slurm",         "kubernetes", "ray"};

// The engine whose table a target must satisfy; a Ray job runs verl.
std::string engine_of(const Plan& plan, ExportTarget target) {
  switch (target) {
    case ExportTarget::torchrun:
    case ExportTarget::slurm:
    case ExportTarget::kubernetes:
      return "tessera";
    case ExportTarget::ray:
      return plan.engine == "verl-megatron" ? "verl-megatron" : "verl";
    default:
      return std::string(name_of(target));
  }
}

std::string notes_text(const Plan& plan, ExportTarget target, const Export& out) {
  std::string text = "# " + std::string(name_of(target)) + " files of a plan\n\n";
  text += "Made by tessera " + plan.provenance.tessera_version + " from a plan of " +
          std::to_string(plan.world_size()) + " ranks.\n\n";
  for (const std::string& note : out.notes) {
    std::string lines = comment_lines(note, "  ");
    lines[0] = '-';
    text += lines;
  }
  return text;
}

}  // namespace

std::string_view name_of(ExportTarget target) { return kNames[static_cast<std::size_t>(target)]; }

std::optional<ExportTarget> export_target_from(std::string_view name, Problems& problems) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return kEveryExportTarget[found - kNames.begin()];
  std::string all;
  for (const std::string_view known : kNames) {
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  problems.push_back({"--to", "", "'" + std::string(name) + "'", all, did_you_mean(name, known)});
  return std::nullopt;
}

JobShape shape_of(const Plan& plan) {
  const std::int64_t world = plan.world_size(), per_node = plan.cluster.gpus_per_node;
  if (world <= per_node) return {1, world};
  return {(world + per_node - 1) / per_node, per_node};
}

std::string script_head(const Plan& plan, std::string_view what) {
  return "#!/usr/bin/env bash\n" + comment_lines(what) +
         comment_lines("Made by tessera " + plan.provenance.tessera_version + "; read NOTES.md.") +
         "set -euo pipefail\n\n";
}

std::string export_lines(const std::vector<EnvironmentVariable>& environment) {
  std::string text;
  for (const EnvironmentVariable& variable : environment) {
    text += comment_lines(variable.reason);
    text += "export " + variable.name + "=" + shell_word(variable.value) + "\n";
  }
  return text;
}

std::string bash_array(std::string_view name, const std::vector<std::string>& words) {
  std::string text = std::string(name) + "=(\n";
  for (const std::string& word : words) text += "  " + shell_word(word) + "\n";
  return text + ")\n";
}

std::optional<Export> export_plan(const Plan& plan, ExportTarget target,
                                  const ExportOptions& options, Problems& problems) {
  const std::size_t before = problems.size();
  Plan theirs = plan;
  theirs.engine = engine_of(plan, target);
  const bool own = theirs.engine == "tessera";
  for (Problem& problem : outside_capabilities(theirs)) {
    if (plan.engine != theirs.engine) problem.hint += "; plan with --engine " + theirs.engine;
    problems.push_back(std::move(problem));
  }
  if (own && plan.engine != "tessera") {
    problems.push_back(
        {"plan", "/engine", "'" + plan.engine + "'", "tessera",
         std::string(name_of(target)) + " starts tessera-run; for verl use --to ray"});
  }
  if (problems.size() != before) return std::nullopt;
  Export out;
  switch (target) {
    case ExportTarget::verl:
    case ExportTarget::verl_megatron:
    case ExportTarget::ray:
      export_verl(theirs, target, options, out, problems);
      break;
    case ExportTarget::megatron:
      export_megatron(theirs, options, out, problems);
      break;
    case ExportTarget::vllm:
    case ExportTarget::sglang:
      export_server(theirs, target, options, out, problems);
      break;
    default:
      export_launcher(theirs, target, options, out, problems);
  }
  if (problems.size() != before) return std::nullopt;
  out.files.push_back({"NOTES.md", notes_text(plan, target, out)});
  return out;
}

}  // namespace tessera
