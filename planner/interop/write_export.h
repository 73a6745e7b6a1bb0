// An exported plan's files in a folder.
#pragma once

#include <filesystem>

namespace tessera {

struct Export;

/// Makes the folder where it is missing; scripts can be executed. Throws Error(io).
void write_export(const Export& made, const std::filesystem::path& folder);

}  // namespace tessera
