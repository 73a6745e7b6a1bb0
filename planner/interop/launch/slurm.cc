// A job of Slurm, submitted by sbatch.
#include "cost_models/documents/problem.h"
#include "cost_models/spec/device/device_kind.h"
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

// --mem=0 is all of a node's memory: --exclusive alone takes all CPUs and GPUs, but only the
// partition's default memory (sbatch(1), --exclusive).
std::string slurm_script(const Plan& plan, const ExportTarget& target,
                         const ExportOptions& options) {
  const JobShape shape = shape_of(plan);
  const std::string gpus = std::to_string(shape.gpus_per_node);
  std::string text = "#!/usr/bin/env bash\n#SBATCH --job-name=" + options.name +
                     "\n#SBATCH --nodes=" + std::to_string(shape.nodes) +
                     "\n#SBATCH --ntasks-per-node=" + gpus;
  if (!is_cpu(plan.cluster.device)) text += "\n#SBATCH --gpus-per-node=" + gpus;
  text += "\n#SBATCH --exclusive\n#SBATCH --mem=0\n#SBATCH --output=%x-%j.log\n";
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n#SBATCH --signal=USR1@120\n";
  text += comment_lines("Starts the plan's ranks by srun, one task per GPU. Made by tessera " +
                        plan.provenance.tessera_version +
                        "; submit it in this folder: sbatch job.sbatch. A cluster that asks for an "
                        "account, a partition or a time limit takes them there, too.");
  text += "set -euo pipefail\n\n";
  text += export_lines(environment_of(plan, target));
  text += comment_lines("Ranks meet on the job's first node, at a port that follows from the job.");
  text +=
      "hosts=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
      "MASTER_ADDR=${hosts%%$'\\n'*}\n"
      "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\nexport MASTER_ADDR MASTER_PORT\n\n";
  text += comment_lines(
      "A rank keeps all cores of its node: bound to one, its data loading and the host's part of "
      "an optimizer would share it.");
  text += "code=0\nsrun --kill-on-bad-exit=1 --cpu-bind=none tessera-run " + train_words(options) +
          " || code=$?\n";
  text += comment_lines(
      "Two minutes before the time limit Slurm sends SIGUSR1: the ranks save and end with code "
      "138, "
      "and the job is queued again. It goes on where run.yaml says trainer.resume_mode: auto.");
  return text +
         "if [ \"$code\" -eq 138 ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\nexit \"$code\"\n";
}

void write_slurm(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                 Export& out, Problems& problems) {
  if (!add_plan_file(plan, options, out, problems)) return;
  out.files.push_back({"job.sbatch", slurm_script(plan, target, options), true});
  note_run_config(options, out);
}

std::string type_advice(const Plan& plan) {
  return "Slurm hands out nodes in its own order: ask for each type by --constraint or --gres, "
         "and name the hosts in this order (SLURM_HOSTFILE with srun --distribution=arbitrary): " +
         nodes_text(plan.cluster) + ".";
}

}  // namespace

ExportTarget slurm_target() {
  return {.name = "slurm",
          .meaning = "Tessera's executor under srun",
          .engines = {kOwnEngine, kInvariantEngine, kOwnEngineWithVllm},
          .program = ExportedProgram::tessera_run,
          .write = write_slurm,
          .type_advice = type_advice};
}

}  // namespace tessera
