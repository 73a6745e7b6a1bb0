#include "planner/interop/export.h"

#include <algorithm>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/device/device_kind.h"
#include "planner/engines/engine_check.h"
#include "planner/interop/files/gpu_types.h"
#include "planner/interop/files/script.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/launch/launch.h"
#include "planner/interop/megatron/megatron.h"
#include "planner/interop/servers/servers.h"
#include "planner/interop/verl/verl.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

// The engine whose capabilities a target must satisfy: the plan's, where the target takes it.
std::string engine_for(const Plan& plan, const ExportTarget& target) {
  const auto own = std::find(target.engines.begin(), target.engines.end(), plan.engine);
  return std::string(own != target.engines.end() ? *own : target.engines.front());
}

// Of the rows with the target's name the one that takes the plan's engine, if any does.
const ExportTarget& target_for(const Plan& plan, const ExportTarget& named) {
  for (const ExportTarget& row : every_export_target()) {
    const bool takes =
        std::find(row.engines.begin(), row.engines.end(), plan.engine) != row.engines.end();
    if (row.name == named.name && takes) return row;
  }
  return named;
}

// What a target can say about GPU types. A launcher starts all ranks of all nodes up to the last;
// a TrainJob's nodes are all of one template (Kubeflow Trainer v2, TrainJob.spec.trainer).
void check_types(const Plan& plan, const ExportTarget& target, Problems& problems) {
  const bool starts_all = target.program == ExportedProgram::tessera_run || target.nodes_alike;
  if (plan.cluster.groups.empty() || !starts_all) return;
  std::set<int> ranks;
  for (const RolePlan& role : plan.roles) ranks.insert(role.ranks.begin(), role.ranks.end());
  if (static_cast<int>(ranks.size()) != plan.world_size()) {
    problems.push_back({"plan", "/roles",
                        std::to_string(plan.world_size() - static_cast<int>(ranks.size())) +
                            " of " + std::to_string(plan.world_size()) + " ranks without a role",
                        "a role on every rank up to the last",
                        "plan on a cluster of the types that are used"});
  } else if (target.nodes_alike && types_of(plan).size() > 1) {
    problems.push_back({"plan", "/cluster/node_types",
                        std::to_string(types_of(plan).size()) + " GPU types", "one",
                        "nodes of such a job are all alike: use --to slurm"});
  }
}

// Where the user has to see to it that every pool gets its type.
void note_types(const Plan& plan, const ExportTarget& target, Export& out) {
  if (plan.cluster.groups.empty()) return;
  std::string roles;
  for (const RolePlan& role : plan.roles) {
    roles += (roles.empty() ? "" : ", ") + std::string(name_of(role.role)) + " on ";
    for (const std::string& type : role.gpu_types) {
      roles += (type == role.gpu_types.front() ? "" : "+") + type;
    }
  }
  const std::string how = target.type_advice != nullptr ? target.type_advice(plan)
                                                        : "start these on nodes of their type.";
  out.notes.push_back("The plan is for several GPU types: " + roles + "; " + how);
}

// What only the site knows of its network; NCCL guesses the rest well.
void note_network(const Plan& plan, const ExportTarget& target, Export& out) {
  const bool served = target.program == ExportedProgram::server;
  if (served || shape_of(plan).nodes == 1 || is_cpu(plan.cluster.device)) return;
  const bool ethernet = plan.cluster.inter_fabric.find("RoCE") != std::string::npos;
  out.notes.push_back(
      "Several nodes: set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) where hosts have interfaces "
      "that do not reach each other (docker0, say), and NCCL_IB_HCA where some adapters are not "
      "for this traffic" +
      std::string(ethernet ? "; on RoCE NCCL_IB_TC and NCCL_IB_GID_INDEX are the fabric's" : "") +
      ". Look for NET/IB in the log of NCCL_DEBUG=INFO once: NET/Socket is TCP.");
}

std::string notes_text(const Plan& plan, const ExportTarget& target, const Export& out) {
  std::string text = "# " + std::string(target.name) + " files of a plan\n\n";
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

const std::vector<ExportTarget>& every_export_target() {
  static const std::vector<ExportTarget> rows = {
      verl_target(),     verl_megatron_target(), verl_veomni_target(), verl_torchtitan_target(),
      megatron_target(), vllm_target(),          sglang_target(),      torchrun_target(),
      slurm_target(),    verl_slurm_target(),    kubernetes_target(),  verl_kubernetes_target(),
      ray_target(),
  };
  return rows;
}

std::string export_target_names() {
  std::string all;
  std::string_view last;
  for (const ExportTarget& target : every_export_target()) {
    if (target.name == last) continue;
    last = target.name;
    all += (all.empty() ? "" : ", ") + std::string(target.name);
  }
  return all;
}

const ExportTarget* export_target_from(std::string_view name, Problems& problems) {
  std::vector<std::string> known;
  for (const ExportTarget& target : every_export_target()) {
    if (target.name == name) return &target;
    known.emplace_back(target.name);
  }
  problems.push_back({"--to", "", "'" + std::string(name) + "'", export_target_names(),
                      did_you_mean(name, known)});
  return nullptr;
}

std::optional<Export> export_plan(const Plan& plan, const ExportTarget& named,
                                  const ExportOptions& options, Problems& problems) {
  const ExportTarget& target = target_for(plan, named);
  const std::size_t before = problems.size();
  Plan theirs = plan;
  theirs.engine = engine_for(plan, target);
  for (Problem& problem : outside_capabilities(theirs)) {
    const bool unknown = problem.place.ends_with("/family");  // to their planning, too
    if (plan.engine != theirs.engine && !unknown)
      problem.hint += "; plan with --engine " + theirs.engine;
    problems.push_back(std::move(problem));
  }
  if (target.program == ExportedProgram::tessera_run && plan.engine != theirs.engine) {
    problems.push_back({"plan", "/engine", "'" + plan.engine + "'", theirs.engine,
                        std::string(target.name) + " starts tessera-run; for verl use --to slurm, "
                                                   "kubernetes or ray"});
  }
  check_types(plan, target, problems);
  if (problems.size() != before) return std::nullopt;
  Export out;
  target.write(theirs, target, options, out, problems);
  if (problems.size() != before) return std::nullopt;
  note_types(plan, target, out);
  note_network(plan, target, out);
  out.files.push_back({"NOTES.md", notes_text(plan, target, out)});
  return out;
}

}  // namespace tessera
