// SPDX-License-Identifier: GPL-3.0-or-later
// A run's folder under the one name that it has: absolute, without symbolic links. Of a run of
// which nothing is left but its log the file stands for the folder. Any thread.
#pragma once

#include <filesystem>

namespace tessera::gui {

/// However the folder is reached, the same path, by its metrics.jsonl, too; of one that is not
/// there as far as it is there.
std::filesystem::path run_folder(const std::filesystem::path& folder);

/// A folder, or a log.
bool is_run_there(const std::filesystem::path& run);

}  // namespace tessera::gui
