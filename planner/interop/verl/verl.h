// verl's configuration, written for a plan and read as one; a Ray job runs it, too.
//
// Pure but for reading the models that are named.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/files/export_target.h"

namespace tessera {

class ConfigValues;
struct ImportOptions;
struct Imported;

ExportTarget verl_target();
ExportTarget verl_megatron_target();
ExportTarget verl_veomni_target();
ExportTarget verl_torchtitan_target();
ExportTarget ray_target();
/// With the names of the targets for Tessera's own executor.
ExportTarget verl_slurm_target();
ExportTarget verl_kubernetes_target();

/// The servers that an exported configuration may take for the rollout (ExportOptions::rollout).
inline constexpr std::array<std::string_view, 2> kVerlRollouts{"vllm", "sglang"};

std::optional<Imported> import_verl(const ConfigValues& config, const ImportOptions& options,
                                    Problems& problems);

}  // namespace tessera
