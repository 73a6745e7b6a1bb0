// Digests of weights that add up: a box's digest is the sum of those of its parts, whoever holds
// them and however they lie in memory.
//
// An element adds mix(key + bits) modulo 2^64 with key = seed + position * kDigestStep: `bits` is
// the element as an unsigned number, `position` its row-major place in the whole tensor of the
// checkpoint, `seed` the tensor's. mix is SplitMix64's output function (Steele, Lea and Flood
// 2014), a bijection: one changed element always changes the digest. Several changes cancel by
// chance alone, one time in 2^64. For finding faults, not against someone who makes them fit: the
// constants are known. Host and GPU agree bit for bit, in any order of the additions. Free of torch
// and of state; device functions work on `stream` (a cudaStream_t).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::kernels {

/// How an element is read: 16 or 32 bits as they are, or fp32 as a 16-bit wire leaves it, rounded
/// to nearest even and widened again. A NaN that is rounded is a quiet NaN of its own sign.
enum class DigestRead : std::uint8_t { bits16, bits32, fp32_as_bf16, fp32_as_fp16 };

/// Elements of a tensor in memory: `rows` times `columns` adjacent ones, from row to row `pitch`
/// elements apart. The steps say how the key changes from row to row and within one.
struct DigestPiece {
  const void* data = nullptr;
  std::int64_t rows = 1, columns = 0, pitch = 0;
  std::uint64_t key = 0, row_step = 0, column_step = 0;
};

constexpr std::uint64_t kDigestStep = 0x9E3779B97F4A7C15U;

constexpr std::uint64_t digest_mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

constexpr std::size_t bytes_of(DigestRead read) { return read == DigestRead::bits16 ? 2 : 4; }

/// fp32 bits rounded to bf16, as fp32 bits.
constexpr std::uint32_t through_bf16(std::uint32_t bits) {
  if ((bits & 0x7fffffffU) > 0x7f800000U) return (bits | 0x400000U) & 0xffff0000U;
  return (bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U;
}

/// fp32 bits rounded to fp16, as fp32 bits.
constexpr std::uint32_t through_fp16(std::uint32_t bits) {
  const std::uint32_t sign = bits & 0x80000000U, magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7fc00000U;   // NaN
  if (magnitude >= 0x477ff000U) return sign | 0x7f800000U;  // 65520 and above
  // fp16 keeps 11 significant bits down to 2^-14, below it multiples of 2^-24.
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return sign;  // below 2^-25
  const std::uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent;
  if (dropped == 24) return magnitude > 0x33000000U ? sign | 0x33800000U : sign;
  const std::uint32_t half = (1U << (dropped - 1)) - 1U + (magnitude >> dropped & 1U);
  return sign | ((magnitude + half) >> dropped << dropped);
}

constexpr std::uint32_t digested_bits(DigestRead read, std::uint32_t bits) {
  if (read == DigestRead::fp32_as_bf16) return through_bf16(bits);
  return read == DigestRead::fp32_as_fp16 ? through_fp16(bits) : bits;
}

/// The reference: one piece in host memory.
template <class Element>
inline std::uint64_t piece_digest_of(const DigestPiece& piece, DigestRead read) {
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < piece.rows; ++row) {
    const auto* from =
        static_cast<const unsigned char*>(piece.data) + row * piece.pitch * sizeof(Element);
    std::uint64_t key = piece.key + static_cast<std::uint64_t>(row) * piece.row_step;
    for (std::int64_t i = 0; i < piece.columns; ++i, from += sizeof(Element)) {
      Element element = 0;
      std::memcpy(&element, from, sizeof element);
      sum += digest_mix(key + digested_bits(read, element));
      key += piece.column_step;
    }
  }
  return sum;
}
inline std::uint64_t piece_digest(const DigestPiece& piece, DigestRead read) {
  return bytes_of(read) == 2 ? piece_digest_of<std::uint16_t>(piece, read)
                             : piece_digest_of<std::uint32_t>(piece, read);
}

/// A piece of at most kDigestElements, and the sum that it belongs to.
struct DigestChunk {
  DigestPiece piece;
  std::int64_t sum = 0;
};
constexpr std::int64_t kDigestElements = std::int64_t{1} << 17;

/// Adds the digest of every chunk to sums[chunk.sum]; `chunks` and `sums` lie on the device.
void add_digests(const DigestChunk* chunks, std::int64_t count, DigestRead read,
                 std::uint64_t* sums, void* stream);

}  // namespace tessera::kernels
