// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/run_folder.h"

#include <system_error>

namespace tessera::gui {

namespace fs = std::filesystem;

fs::path run_folder(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error);
  if (error) return folder;
  fs::path canonical = fs::weakly_canonical(whole, error);
  if (error) canonical = whole.lexically_normal();  // it cannot be looked into
  return canonical.has_filename() ? canonical : canonical.parent_path();
}

}  // namespace tessera::gui
