// Arguments of a command, as words.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

using Words = std::vector<std::string>;

/// Appends a flag and its value.
inline void put(Words& words, std::string flag, std::string value) {
  words.push_back(std::move(flag));
  words.push_back(std::move(value));
}
inline void put(Words& words, std::string flag, std::int64_t value) {
  put(words, std::move(flag), std::to_string(value));
}

}  // namespace tessera
