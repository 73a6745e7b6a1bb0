// Random numbers that depend on nothing but their name: Philox4x32-10 (Random123) with the seed as
// key and use, stream and index as counter. The same on every rank, layout and resumed run.
//
// Pure functions, any thread.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

/// The purpose of a draw, so that no two uses share numbers.
enum class RandomUse : std::uint32_t {
  prompt_order = 1,
  digit_tasks = 2,
  initial_weights = 3,
  initial_adapters = 4
};

/// 128 random bits; `index` counts inside the stream and use.
std::array<std::uint32_t, 4> random_block(std::uint64_t seed, RandomUse use, std::uint64_t stream,
                                          std::uint32_t index);

/// Uniform in [0, bound) up to 2^-64 bound (multiply-shift). Precondition: bound > 0.
std::uint64_t random_below(std::uint64_t bound, std::uint64_t seed, RandomUse use,
                           std::uint64_t stream, std::uint32_t index);

/// Standard normal numbers 4 * block .. 4 * block + 3 of a stream (Box and Muller 1958).
std::array<float, 4> normal_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block);

}  // namespace tessera
