// SPDX-License-Identifier: GPL-3.0-or-later
// What a file or a folder is to the window, by what is in it.
//
// Only reads, and judges by keys alone: whether the rest is right says who opens it. Any thread.
#pragma once

#include <filesystem>
#include <optional>

#include "cost_models/documents/problem_list.h"

namespace tessera::gui {

/// `script`: that starts another program, or its configuration.
enum class FileKind { plan, project, model, cluster, workload, run, topology, trace, script };

/// nullopt and a Problem where it is none of them.
std::optional<FileKind> kind_of(const std::filesystem::path& path, Problems& problems);

/// Where the run of a folder is: the folder itself or, where it has a plan and no run's metrics or
/// ranks, the folder in it that has some and was written last (the quickstart's).
std::filesystem::path run_of(const std::filesystem::path& folder);

}  // namespace tessera::gui
