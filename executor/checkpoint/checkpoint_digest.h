// Digests of what a checkpoint holds: xxh3, 64 bits, in hexadecimal, always as many characters.
//
// Plain functions without state; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace tessera {

std::string checkpoint_digest(std::span<const std::byte> bytes);

/// The same of bytes that are read for something else as well: `take` gets them piece by piece,
/// each while the digest has it in a processor's cache. nullopt as soon as `take` returns false.
std::optional<std::string> checkpoint_digest(
    std::span<const std::byte> bytes, const std::function<bool(std::span<const std::byte>)>& take);

}  // namespace tessera
