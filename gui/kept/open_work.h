// SPDX-License-Identifier: GPL-3.0-or-later
// What every window that is open has that may be in no file: pinned plans, and runs that are drawn
// beside one another. In a file of its own, so that a window that is killed loses none of it.
//
// The file is a project (gui/document/project.h) beside what is remembered, with the process's
// number in its name. A window that ends well leaves none. GUI thread.
#pragma once

#include <filesystem>
#include <vector>

#include "gui/document/project.h"

namespace tessera::gui {

/// Of this process. `memory`: the file of what is remembered (workspace.h).
std::filesystem::path open_work_file(const std::filesystem::path& memory);

/// Of an empty project the file goes. Throws Error(io); a file that was there is unchanged then.
void keep_open_work(const Project& work, const std::filesystem::path& file);

/// Those of windows of this host whose process is gone, the oldest first.
std::vector<std::filesystem::path> left_work(const std::filesystem::path& memory);

}  // namespace tessera::gui
