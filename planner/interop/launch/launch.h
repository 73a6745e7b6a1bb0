// Launchers that start tessera-run on every node: torchrun, Slurm, Kubeflow's TrainJob.
#pragma once

#include "planner/interop/files/export_target.h"

namespace tessera {

ExportTarget torchrun_target();
ExportTarget slurm_target();
ExportTarget kubernetes_target();

}  // namespace tessera
