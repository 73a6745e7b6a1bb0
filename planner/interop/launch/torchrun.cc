// torchrun on every node, by hand.
#include "cost_models/documents/problem.h"
#include "planner/engines/fixed_order.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/gpu_types.h"
#include "planner/interop/files/script.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/launch/launch.h"
#include "planner/interop/launch/launch_files.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::string torchrun_script(const Plan& plan, const ExportTarget& target,
                            const ExportOptions& options) {
  const JobShape shape = shape_of(plan);
  const std::string where =
      shape.nodes == 1
          ? "Starts the plan's ranks on this node."
          : "Starts the plan's ranks on this node. Run it on every node with NODE_RANK "
            "from 0 and MASTER_ADDR, a name of the first that all reach.";
  return script_head(plan, where) + export_lines(environment_of(plan, target)) +
         rendezvous_lines(shape) + "\ncd \"$(dirname \"$0\")\"\nexec torchrun --no-python " +
         torchrun_shape(shape) + " \\\n  tessera-run " + train_words(options) + " \"$@\"\n";
}

void write_torchrun(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                    Export& out, Problems& problems) {
  if (!add_plan_file(plan, options, out, problems)) return;
  out.files.push_back({"launch.sh", torchrun_script(plan, target, options), true});
  note_run_config(options, out);
}

std::string type_advice(const Plan& plan) {
  return "start node ranks in this order: " + nodes_text(plan.cluster) + ".";
}

}  // namespace

ExportTarget torchrun_target() {
  return {.name = "torchrun",
          .meaning = "Tessera's executor under torchrun",
          .engines = {kOwnEngine, kInvariantEngine, kOwnEngineWithVllm},
          .program = ExportedProgram::tessera_run,
          .write = write_torchrun,
          .type_advice = type_advice};
}

}  // namespace tessera
