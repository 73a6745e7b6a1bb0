#include "planner/interop/write_export.h"

#include <system_error>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "planner/interop/files/export_target.h"

namespace tessera {

void write_export(const Export& made, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(ExitCode::io, folder.string() + ": " + error.message());
  for (const ExportedFile& file : made.files) {
    write_text_file(folder / file.name, file.text);
    if (!file.executable) continue;
    const auto bits = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
    fs::permissions(folder / file.name, bits, fs::perm_options::add, error);
    if (error) throw Error(ExitCode::io, (folder / file.name).string() + ": " + error.message());
  }
}

}  // namespace tessera
