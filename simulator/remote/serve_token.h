// The token that a server of runs asks for: whoever has it may read them, and
// pause and stop them where the server does not forbid it.
//
// 64 hexadecimal digits of 32 bytes from the kernel, in a file that its owner alone may read. The
// file stays from one server to the next, so that a tunnel goes on with the token that it has.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Whoever looks at a server may have its token in this variable of the environment.
inline constexpr const char* kTokenVariable = "TESSERA_REMOTE_TOKEN";

/// 64 hexadecimal digits.
bool is_token(std::string_view text);

/// In a time that does not depend on where they differ.
bool same_token(std::string_view given, std::string_view token);

/// The token of the file; where there is none a new one, in a file of mode 0600. Throws Error: io
/// where it cannot be written, bad_input where it is no token, or others may read it.
std::string kept_token(const std::filesystem::path& file);

/// The token of a file that holds nothing else; nullopt and a Problem where it is none.
std::optional<std::string> read_token(const std::filesystem::path& file, Problems& problems);

/// $XDG_STATE_HOME/tessera/serve.token, else ~/.local/state/tessera/serve.token. Throws Error
/// (usage) where the user has no home.
std::filesystem::path token_file();

}  // namespace tessera
