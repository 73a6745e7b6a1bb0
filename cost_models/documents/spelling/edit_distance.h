// How far two words are apart, to find what a misspelt one was meant to be. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

/// Insertions, deletions and substitutions between two words where they are fewer than `most`, else
/// some number of at least `most`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most);

}  // namespace tessera
