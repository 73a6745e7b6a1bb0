#include "executor/data/counter_random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace tessera {
namespace {

__extension__ using Wide = unsigned __int128;

/// A key of its own per use: sampling takes the bare seed as its key.
std::uint64_t key_of(std::uint64_t seed, RandomUse use) {
  return seed ^ static_cast<std::uint64_t>(use) * 0x9e3779b97f4a7c15u;
}

std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::array<std::uint32_t, 4> counter) {
  const r123::Philox4x32::key_type key{
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const r123::Philox4x32::ctr_type at{{counter[0], counter[1], counter[2], counter[3]}};
  const auto bits = r123::Philox4x32{}(at, key);
  return {bits[0], bits[1], bits[2], bits[3]};
}

}  // namespace

std::array<std::uint32_t, 4> random_block(std::uint64_t seed, RandomUse use, std::uint64_t stream,
                                          std::uint32_t index) {
  return philox(key_of(seed, use), {index, static_cast<std::uint32_t>(stream),
                                    static_cast<std::uint32_t>(stream >> 32), 0});
}

std::uint64_t random_below(std::uint64_t bound, std::uint64_t seed, RandomUse use,
                           std::uint64_t stream, std::uint32_t index) {
  const auto bits = random_block(seed, use, stream, index);
  const std::uint64_t wide = static_cast<std::uint64_t>(bits[1]) << 32 | bits[0];
  return static_cast<std::uint64_t>(static_cast<Wide>(wide) * static_cast<Wide>(bound) >> 64);
}

std::array<float, 4> normal_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  const auto bits =
      philox(key_of(seed, RandomUse::initial_weights),
             {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
              static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
  std::array<float, 4> normals;
  for (std::size_t pair = 0; pair < 2; ++pair) {
    // Uniform in (0, 1]: the logarithm is finite.
    const double u = (static_cast<double>(bits[2 * pair]) + 1.0) * 0x1p-32;
    const double v = static_cast<double>(bits[2 * pair + 1]) * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(u));
    normals[2 * pair] = static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * v));
    normals[2 * pair + 1] = static_cast<float>(radius * std::sin(2.0 * std::numbers::pi * v));
  }
  return normals;
}

}  // namespace tessera
