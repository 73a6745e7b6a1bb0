// Checks of numbers on the command line: what a number's type holds says nothing of what it may be.
//
// Pure; each says what was found and what was expected.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace tessera {

/// A whole number from `least` to `most`, written in digits alone.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

/// GiB of a device's memory: a finite number above 0, at most 2^20.
CLI::Validator memory_in_gib();

}  // namespace tessera
