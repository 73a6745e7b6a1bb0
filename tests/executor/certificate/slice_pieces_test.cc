// Digests of random boxes against sums over their elements one by one; the mix and the roundings
// against values and types that are not ours.
#include "executor/certificate/slice_pieces.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <bit>
#include <random>

#include "executor/arena/memory_ops.h"

namespace tessera {
namespace {

using kernels::DigestPiece;
using kernels::DigestRead;

TEST(WeightDigest, MixesAsSplitMix64) {
  // The first numbers of Vigna's splitmix64.c from the state 1234567.
  const std::uint64_t wanted[]{6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                               4593380528125082431U, 16408922859458223821U};
  std::uint64_t state = 1234567;
  for (const std::uint64_t number : wanted) {
    EXPECT_EQ(kernels::digest_mix(state += kernels::kDigestStep), number);
  }
}

TEST(WeightDigest, RoundsAsEigensTypes) {
  std::mt19937 draw(7);
  const auto check = [](std::uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) return;
    const auto brain = static_cast<float>(static_cast<Eigen::bfloat16>(value));
    const auto half = static_cast<float>(static_cast<Eigen::half>(value));
    ASSERT_EQ(kernels::through_bf16(bits), std::bit_cast<std::uint32_t>(brain)) << bits;
    ASSERT_EQ(kernels::through_fp16(bits), std::bit_cast<std::uint32_t>(half)) << bits;
  };
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    // Ties and their neighbours of either type, below and above.
    for (const std::uint32_t lower :
         {0U, 1U, 0xfffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU, 0x3000U, 0x5000U}) {
      check(upper << 16 | lower);
    }
  }
  for (int i = 0; i < 1'000'000; ++i) check(draw());
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(kernels::through_bf16(0x7f800001U))));
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(kernels::through_fp16(0xff800001U))));
}

/// A random part of a random tensor in memory, and a random box of it.
struct Case {
  std::vector<std::int64_t> shape;
  HeldPart part;
  Box box;
  std::vector<std::byte> memory;
};

Interval random_range(Interval within, std::mt19937& draw) {
  const auto lo = std::uniform_int_distribution(within.lo, within.hi - 1)(draw);
  return {lo, std::uniform_int_distribution(lo + 1, within.hi)(draw)};
}

Case random_case(std::mt19937& draw) {
  Case made;
  const int rank = std::uniform_int_distribution(0, kMaxTensorRank)(draw);
  for (int dim = 0; dim < rank; ++dim) {
    made.shape.push_back(std::uniform_int_distribution(1, 7)(draw));
  }
  made.part.box = whole(made.shape);
  made.box = made.part.box;
  for (int dim = 0; dim < rank; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    Interval& held = made.part.box.dims[d];
    if (draw() % 2 == 0) held = random_range(held, draw);
    made.box.dims[d] = draw() % 2 == 0 ? held : random_range(held, draw);
  }
  made.part.outer_dim = rank == 0 ? 0 : static_cast<int>(draw() % static_cast<unsigned>(rank));
  made.part.element_bytes = draw() % 2 == 0 ? 2 : 4;
  made.memory.resize(static_cast<std::size_t>(volume(made.part.box) * made.part.element_bytes));
  for (std::byte& byte : made.memory) byte = static_cast<std::byte>(draw());
  return made;
}

/// Every element of the box in the order of the part's memory: its position in the tensor and its
/// place in the part, by counting one dim after the other.
std::vector<std::pair<std::int64_t, std::int64_t>> elements_of(const Case& c) {
  std::vector<int> order;
  if (c.box.rank > 0) order.push_back(c.part.outer_dim);
  for (int dim = 0; dim < c.box.rank; ++dim) {
    if (dim != c.part.outer_dim) order.push_back(dim);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  std::vector<std::int64_t> at;
  for (int dim = 0; dim < c.box.rank; ++dim) {
    at.push_back(c.box.dims[static_cast<std::size_t>(dim)].lo);
  }
  while (true) {
    std::int64_t position = 0, place = 0;
    for (std::size_t dim = 0; dim < at.size(); ++dim) position = position * c.shape[dim] + at[dim];
    for (const int dim : order) {
      const Interval held = c.part.box.dims[static_cast<std::size_t>(dim)];
      place = place * held.size() + at[static_cast<std::size_t>(dim)] - held.lo;
    }
    found.emplace_back(position, place);
    std::size_t turn = order.size();
    for (; turn > 0; --turn) {
      const auto dim = static_cast<std::size_t>(order[turn - 1]);
      if (++at[dim] < c.box.dims[dim].hi) break;
      at[dim] = c.box.dims[dim].lo;
    }
    if (turn == 0) return found;
  }
}

std::uint64_t one_digest(const Case& c, std::uint64_t seed, std::int64_t position,
                         std::int64_t place) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, c.memory.data() + place * c.part.element_bytes,
              static_cast<std::size_t>(c.part.element_bytes));
  return kernels::digest_mix(seed + static_cast<std::uint64_t>(position) * 0x9E3779B97F4A7C15U +
                             bits);
}

std::uint64_t digest_of(std::span<const DigestPiece> pieces, const Case& c) {
  std::uint64_t sum = 0;
  for (const std::uint64_t each : host_memory_ops().digests(
           pieces, c.part.element_bytes == 2 ? DigestRead::bits16 : DigestRead::bits32)) {
    sum += each;
  }
  return sum;
}

TEST(SlicePieces, DigestsOfRandomBoxesAreTheSumsOfTheirElements) {
  std::mt19937 draw(11);
  for (int turn = 0; turn < 3000; ++turn) {
    Case c = random_case(draw);
    c.part.data = c.memory.data();
    const std::uint64_t seed = digest_seed("tensor " + std::to_string(turn));
    const auto pieces = slice_pieces(c.part, c.box, c.shape, seed);
    const auto elements = elements_of(c);
    std::uint64_t wanted = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto [position, place] = elements[i];
      ASSERT_EQ(place_in(c.part, c.box, static_cast<std::int64_t>(i)), place);
      wanted += one_digest(c, seed, position, place);
    }
    ASSERT_EQ(digest_of(pieces, c), wanted);
    // Any part of the order of memory, cut out of the pieces.
    const Interval range = random_range({0, std::ssize(elements)}, draw);
    wanted = 0;
    for (std::int64_t i = range.lo; i < range.hi; ++i) {
      const auto [position, place] = elements[static_cast<std::size_t>(i)];
      wanted += one_digest(c, seed, position, place);
    }
    ASSERT_EQ(digest_of(cut_pieces(pieces, range, c.part.element_bytes), c), wanted);
  }
}

TEST(SlicePieces, WhatIsDenseIsOnePieceOfOneRow) {
  const std::vector<std::int64_t> shape{6, 5, 4};
  const std::vector<std::uint16_t> memory(120);
  const HeldPart part{.box = whole(shape), .outer_dim = 0, .data = memory.data()};
  const auto rows = slice_pieces(part, restricted(part.box, 0, {2, 5}), shape, 0);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].rows, 1);
  EXPECT_EQ(rows[0].columns, 60);
  EXPECT_EQ(slice_pieces(part, restricted(part.box, 1, {1, 1}), shape, 0).size(), 0U);
}

}  // namespace
}  // namespace tessera
