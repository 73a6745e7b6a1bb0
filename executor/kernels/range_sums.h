// Copies and 64-bit sums of byte ranges, and casts for the wire: what a reshard does on weights.
//
// A sum is over 8-byte words, each mixed with its position in the range, modulo 2^64: it does not
// depend on where the range lies, nor on the order of the additions, so host and GPU agree bit for
// bit. For finding changes, not for security. Free of torch; device functions work on `stream` (a
// cudaStream_t), have no state and need no scratch memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::kernels {

/// A piece of a range, at most kSumBytes long and cut at multiples of 8 bytes from its start.
struct SumChunk {
  const void* data = nullptr;
  std::uint64_t first_word = 0;  // position of the piece in the range
  std::uint32_t bytes = 0;
  std::uint32_t range = 0;
};
inline constexpr std::size_t kSumBytes = std::size_t{1} << 17;

/// The mix of one word, and what a range's length adds to the sum of its words. The odd constants
/// are those of SplitMix64 (Steele, Lea and Flood 2014).
constexpr std::uint64_t kSumStep = 0x9E3779B97F4A7C15u;
constexpr std::uint64_t mixed_word(std::uint64_t word, std::uint64_t key) {
  const std::uint64_t x = (word ^ key) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}
constexpr std::uint64_t key_of_word(std::uint64_t position) { return (position + 1) * kSumStep; }

/// The reference: one range in host memory.
inline std::uint64_t range_sum(const void* data, std::size_t bytes) {
  std::uint64_t sum = bytes;
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(data) + at,
                std::min<std::size_t>(8, bytes - at));
    sum += mixed_word(word, key_of_word(at / 8));
  }
  return sum;
}

/// Adds the words of every chunk to sums[chunk.range]. `chunks` and `sums` lie on the device; the
/// sums start at the ranges' lengths in bytes.
void add_range_sums(const SumChunk* chunks, std::int64_t count, std::uint64_t* sums, void* stream);

/// A piece of a copy between ranges that do not overlap, at most kCopyBytes long.
struct CopyChunk {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t bytes = 0;
};
inline constexpr std::size_t kCopyBytes = std::size_t{1} << 16;

/// `chunks` lie on the device. `blocks` of them at once, at most one a multiprocessor and few where
/// the memory has others to serve; 0 = all.
void copy_ranges(const CopyChunk* chunks, std::int64_t count, std::int64_t blocks, void* stream);

/// From fp32, to nearest even. `sums` (fp64 [2] on the device, or nullptr): adds the squared error
/// and the squared norm.
enum class HalfType : std::uint8_t { bf16, fp16 };
void cast_to_half(const float* from, void* to, HalfType type, std::int64_t count, double* sums,
                  void* stream);

}  // namespace tessera::kernels
