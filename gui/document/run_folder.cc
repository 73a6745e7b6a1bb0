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
  const bool steps =
      canonical.filename() == "metrics.jsonl" && fs::is_regular_file(canonical, error);
  return canonical.has_filename() && !steps ? canonical : canonical.parent_path();
}

bool is_run_there(const fs::path& run) {
  std::error_code error;
  return fs::is_directory(run, error) || fs::is_regular_file(run, error);
}

}  // namespace tessera::gui
