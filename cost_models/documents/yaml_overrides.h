// A YAML map with words KEY=VALUE of a command line merged in. Stateless.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"

namespace tessera {

/// `text`, a YAML map of `file`, in which each word sets a key (a.b.c) to a value, itself YAML;
/// maps on the way are made. Throws Error: usage for a word, named as `option` has it, that is no
/// KEY=VALUE or whose value is no YAML, bad_input for a text that is no map.
std::string with_overrides(std::string_view text, const std::vector<std::string>& words,
                           const std::string& file, const std::string& option = "--set");

/// Gives the problems of `original.file`, which were found in its text with `words` merged in, the
/// place that their reader knows: a key that a word sets is of "--set KEY=VALUE", any other has its
/// line in `original`, or that of the map which lacks it.
void place_overridden(const Document& original, const std::vector<std::string>& words,
                      Problems& problems, const std::string& option = "--set");

}  // namespace tessera
