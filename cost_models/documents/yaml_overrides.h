// A YAML map with words KEY=VALUE of a command line merged in. Stateless.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// `text`, a YAML map of `file`, in which each word sets a key (a.b.c) to a value, itself YAML;
/// maps on the way are made. Throws Error: usage for a word, named as `option` has it, that is no
/// KEY=VALUE or whose value is no YAML, bad_input for a text that is no map.
std::string with_overrides(std::string_view text, const std::vector<std::string>& words,
                           const std::string& file, const std::string& option = "--set");

}  // namespace tessera
