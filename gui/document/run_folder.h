// SPDX-License-Identifier: GPL-3.0-or-later
// A run's folder under the one name that it has: absolute, without symbolic links. Any thread.
#pragma once

#include <filesystem>

namespace tessera::gui {

/// However the folder is reached, the same path; of one that is not there as far as it is there.
std::filesystem::path run_folder(const std::filesystem::path& folder);

}  // namespace tessera::gui
