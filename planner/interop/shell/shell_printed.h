// What commands of a shell print, where no run and no variable is needed to tell.
//
// Pure; nothing is run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// The words of `echo`, where tests around it have known outcomes; nullopt = only a run would tell,
/// or there is nothing.
std::optional<std::string> printed_by(std::string_view commands, const std::string& file);

/// True for commands that tell NVIDIA's GPUs from other devices.
bool tells_devices(std::string_view commands);

/// A sentence of what was taken for a substitution's text.
std::string assumption(const std::string& file, int line, std::string substitution,
                       const std::string& printed);

}  // namespace tessera
