// The formats that are read as plans, as values: the rows of import_format.cc.
//
// Plain values of static lifetime. A new format is a folder of its own with its CMakeLists.txt, a
// ConfigSyntax, and one row in import_format.cc (CONTRIBUTING.md).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"

namespace tessera {

struct ImportOptions;
struct Imported;

/// A program that takes the format's arguments: a word of a command that begins with `word`, or is
/// `word` with a folder before it and `next` behind.
struct FormatProgram {
  std::string_view word, next;
};

struct ImportFormat {
  ConfigSyntax syntax = ConfigSyntax::verl;
  std::vector<FormatProgram> programs;
  /// Flags that no other format has: they tell whose arguments without a program are.
  std::vector<std::string_view> own_flags;
  std::optional<Imported> (*import)(const ConfigValues& config, const ImportOptions& options,
                                    Problems& problems) = nullptr;
};

/// In the order in which arguments without a program are tried.
const std::vector<ImportFormat>& every_import_format();
const ImportFormat& format_of(ConfigSyntax syntax);

}  // namespace tessera
