#include "planner/interop/files/script.h"

#include "planner/interop/files/setting.h"
#include "planner/plan/plan.h"

namespace tessera {

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

}  // namespace tessera
