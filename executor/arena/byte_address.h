// The address of a byte of a memory, by its offset.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

inline std::byte* at(void* memory, std::int64_t offset) {
  return static_cast<std::byte*>(memory) + offset;
}
inline const std::byte* at(const void* memory, std::int64_t offset) {
  return static_cast<const std::byte*>(memory) + offset;
}

}  // namespace tessera
