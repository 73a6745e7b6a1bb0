// Megatron-LM's arguments, written for a plan and read as one.
//
// Pure but for reading the models that are named.
#pragma once

#include <optional>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/files/export_target.h"

namespace tessera {

class ConfigValues;
struct ImportOptions;
struct Imported;

ExportTarget megatron_target();

/// The plan of an actor that trains, with a rollout that keeps its layout. nullopt and Problems
/// where the arguments are none of a model or a layout.
std::optional<Imported> import_megatron(const ConfigValues& config, const ImportOptions& options,
                                        Problems& problems);

}  // namespace tessera
