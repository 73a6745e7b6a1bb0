#include "planner/interop/export.h"

#include <algorithm>
#include <set>

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

// "ranks 0-31 (nodes 0-3): H100-SXM-80GB".
std::string nodes_text(const ClusterSpec& cluster) {
  std::string text;
  std::int64_t node = 0;
  for (const NodeGroup& group : cluster.groups) {
    const std::int64_t last = node + group.nodes - 1;
    text += (text.empty() ? "nodes " : ", nodes ") + std::to_string(node) + "-" +
            std::to_string(last) + " (ranks " + std::to_string(node * cluster.gpus_per_node) + "-" +
            std::to_string((last + 1) * cluster.gpus_per_node - 1) + ") " + group.device.name;
    node += group.nodes;
  }
  return text;
}

std::set<std::string> types_of(const Plan& plan) {
  std::set<std::string> types;
  for (const RolePlan& role : plan.roles) {
    types.insert(role.gpu_types.begin(), role.gpu_types.end());
  }
  return types;
}

// What a target can say about GPU types. A launcher starts all ranks of all nodes up to the last;
// a TrainJob's nodes are all of one template (Kubeflow Trainer v2, TrainJob.spec.trainer).
void check_types(const Plan& plan, ExportTarget target, Problems& problems) {
  if (plan.cluster.groups.empty()) return;
  const bool launches = target == ExportTarget::torchrun || target == ExportTarget::slurm ||
                        target == ExportTarget::kubernetes;
  if (!launches) return;
  std::set<int> ranks;
  for (const RolePlan& role : plan.roles) ranks.insert(role.ranks.begin(), role.ranks.end());
  if (static_cast<int>(ranks.size()) != plan.world_size()) {
    problems.push_back({"plan", "/roles",
                        std::to_string(plan.world_size() - static_cast<int>(ranks.size())) +
                            " of " + std::to_string(plan.world_size()) + " ranks without a role",
                        "a role on every rank up to the last",
                        "plan on a cluster of the types that are used"});
  } else if (target == ExportTarget::kubernetes && types_of(plan).size() > 1) {
    problems.push_back({"plan", "/cluster/node_types",
                        std::to_string(types_of(plan).size()) + " GPU types", "one",
                        "a TrainJob's nodes are all alike: use --to slurm or torchrun"});
  }
}

// Where the user has to see to it that every pool gets its type.
void note_types(const Plan& plan, ExportTarget target, Export& out) {
  if (plan.cluster.groups.empty()) return;
  std::string roles;
  for (const RolePlan& role : plan.roles) {
    roles += (roles.empty() ? "" : ", ") + std::string(name_of(role.role)) + " on ";
    for (const std::string& type : role.gpu_types) {
      roles += (type == role.gpu_types.front() ? "" : "+") + type;
    }
  }
  std::string how;
  switch (target) {
    case ExportTarget::verl:
    case ExportTarget::verl_megatron:
    case ExportTarget::ray:
      how =
          "verl 0.9.1 has no key for it and Ray fills its pools from any nodes: give the nodes of "
          "each type a resource of their own (ray start --resources) and its name to "
          "RayResourcePool's accelerator_type where the trainer makes its pools.";
      break;
    case ExportTarget::torchrun:
      how = "start node ranks in this order: " + nodes_text(plan.cluster) + ".";
      break;
    case ExportTarget::slurm:
      how =
          "Slurm hands out nodes in its own order: ask for each type by --constraint or --gres, "
          "and name the hosts in this order (SLURM_HOSTFILE with srun --distribution=arbitrary): " +
          nodes_text(plan.cluster) + ".";
      break;
    case ExportTarget::kubernetes:
      how = "give the job a nodeSelector for " + *types_of(plan).begin() + ".";
      break;
    default:
      how = "start these on nodes of their type.";
  }
  out.notes.push_back("The plan is for several GPU types: " + roles + "; " + how);
}

// What only the site knows of its network; NCCL guesses the rest well.
void note_network(const Plan& plan, ExportTarget target, Export& out) {
  const bool served = target == ExportTarget::vllm || target == ExportTarget::sglang;
  if (served || shape_of(plan).nodes == 1 || plan.cluster.device.name == "cpu") return;
  const bool ethernet = plan.cluster.inter_fabric.find("RoCE") != std::string::npos;
  out.notes.push_back(
      "Several nodes: set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) where hosts have interfaces "
      "that do not reach each other (docker0, say), and NCCL_IB_HCA where some adapters are not "
      "for this traffic" +
      std::string(ethernet ? "; on RoCE NCCL_IB_TC and NCCL_IB_GID_INDEX are the fabric's" : "") +
      ". Look for NET/IB in the log of NCCL_DEBUG=INFO once: NET/Socket is TCP.");
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

std::string rendezvous_lines(JobShape shape) {
  if (shape.nodes == 1) return {};
  return "\n: \"${NODE_RANK:?set it to the place of this node, 0 to " +
         std::to_string(shape.nodes - 1) +
         "}\"\n: \"${MASTER_ADDR:?set it to a name or address of the first node}\"\n";
}

std::string torchrun_shape(JobShape shape) {
  const std::string ranks = "--nproc-per-node " + std::to_string(shape.gpus_per_node);
  if (shape.nodes == 1) return "--standalone " + ranks;
  return "--nnodes " + std::to_string(shape.nodes) + " " + ranks +
         " \\\n  --node-rank \"$NODE_RANK\" --master-addr \"$MASTER_ADDR\" "
         "--master-port \"${MASTER_PORT:-29500}\"";
}

std::string yaml_string(std::string_view text) {
  const std::string plain = yaml_text(text);
  return plain.starts_with('"') ? plain : "\"" + plain + "\"";
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
  check_types(plan, target, problems);
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
  note_types(plan, target, out);
  note_network(plan, target, out);
  out.files.push_back({"NOTES.md", notes_text(plan, target, out)});
  return out;
}

}  // namespace tessera
