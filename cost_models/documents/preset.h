// Where a preset's name (a model, cluster, workload or run) is looked up.
//
// Roots, first hit wins: $TESSERA_CONFIGS_DIR, configs/ of the source tree this was built from,
// share/tessera/configs beside the installed executable's bin folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

/// The roots that exist, in order.
std::vector<std::filesystem::path> config_roots();

/// Names of the presets of a kind ("models", "clusters", "workloads", "runs"), sorted.
std::vector<std::string> preset_names(std::string_view kind, std::string_view extension);

/// `where` itself when it exists; otherwise, for a bare name, ROOT/kind/NAME + extension (".yaml",
/// or "" for folders). nullopt and a Problem with did-you-mean when there is neither.
std::optional<std::filesystem::path> find_config(const std::filesystem::path& where,
                                                 std::string_view kind, std::string_view extension,
                                                 Problems& problems);

}  // namespace tessera
