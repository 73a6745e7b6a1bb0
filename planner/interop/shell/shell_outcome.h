// What a shell's tests and patterns give where their words are known.
//
// Pure; nothing is run and no file is looked at: -f and its kin stay unknown.
#pragma once

#include <optional>
#include <string_view>

#include "planner/interop/shell/shell_words.h"

namespace tessera {

/// Whether a command succeeds: `[`, `[[`, `test`, `true`, `:` and `false`. nullopt = only a run
/// would tell.
std::optional<bool> shell_outcome(const ShellCommand& command);

/// A pattern of `case`: `*` and `?` stand for text; nullopt where it holds anything richer.
std::optional<bool> shell_matches(const ShellWord& pattern, const ShellWord& text);

}  // namespace tessera
