// Arguments of the inference servers vLLM and SGLang, written for a plan's rollout and read as one.
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

ExportTarget vllm_target();
ExportTarget sglang_target();

/// A plan that only generates: one server's rollout. Precondition: `config` is of a server.
std::optional<Imported> import_server(const ConfigValues& config, const ImportOptions& options,
                                      Problems& problems);

}  // namespace tessera
