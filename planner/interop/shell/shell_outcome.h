// What a shell's tests and patterns give where their words are known.
//
// Pure; nothing is run and no file is looked at: -f and its kin stay unknown.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/interop/shell/shell_words.h"

namespace tessera {

/// Whether a command succeeds: `[`, `[[`, `test`, `true`, `:` and `false`; an import of torch_npu
/// by a Python line does not, as on hosts with NVIDIA GPUs. nullopt = only a run would tell.
std::optional<bool> shell_outcome(const ShellCommand& command);

/// A device of NVIDIA's as scripts call it: gpu, cuda, nvidia, in any case.
bool names_gpus(std::string_view text);

/// `[ "$DEVICE" = gpu ]` of a device that is not known.
bool asks_for_gpus(const ShellCommand& test);

/// Of a command of unknown outcome: the word that is not known, or "whether `...` succeeds".
std::string what_a_run_tells(const ShellCommand& command);

/// A pattern of `case`: `*` and `?` stand for text; nullopt where it holds anything richer.
std::optional<bool> shell_matches(const ShellWord& pattern, const ShellWord& text);

}  // namespace tessera
