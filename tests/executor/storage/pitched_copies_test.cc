// Copies joined as rows: what they move is what the batch says, and as few calls as a hand counts.
#include "executor/storage/pitched_copies.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

namespace tessera {
namespace {

using Copy = std::tuple<std::ptrdiff_t, std::ptrdiff_t, std::size_t>;  // to, from, bytes

std::byte* at(std::ptrdiff_t offset) {
  return reinterpret_cast<std::byte*>((std::ptrdiff_t{1} << 40) + offset);
}

CopyBatch batch_of(const std::vector<Copy>& copies) {
  CopyBatch batch;
  for (const auto& [to, from, bytes] : copies) batch.add(at(to), at(from), bytes);
  return batch;
}

std::vector<Copy> rows_of(const std::vector<PitchedCopy>& pitched) {
  std::vector<Copy> copies;
  for (const PitchedCopy& copy : pitched) {
    for (std::size_t r = 0; r < copy.rows; ++r) {
      const auto* const to = static_cast<std::byte*>(copy.to) + r * copy.to_pitch;
      const auto* const from = static_cast<const std::byte*>(copy.from) + r * copy.from_pitch;
      copies.emplace_back(to - at(0), from - at(0), copy.bytes);
    }
  }
  return copies;
}

TEST(PitchedCopies, PartsOfExpertsAreRows) {
  // Halves of 64 experts' three matrices: packed where they go, every second half where they lie.
  std::vector<Copy> copies;
  for (int i = 0; i < 192; ++i) copies.emplace_back(500 + i * 100, i * 200, 100);
  const auto pitched = pitched_copies(batch_of(copies));
  ASSERT_EQ(pitched.size(), 1U);
  EXPECT_EQ(pitched[0].rows, 192U);
  EXPECT_EQ(pitched[0].to_pitch, 100U);
  EXPECT_EQ(pitched[0].from_pitch, 200U);
  EXPECT_EQ(rows_of(pitched), copies);
}

TEST(PitchedCopies, OnlyEqualCopiesAtEqualDistancesAreJoined) {
  const std::ptrdiff_t far = std::ptrdiff_t{1} << 31;
  struct Case {
    std::vector<Copy> copies;
    std::size_t calls;
  };
  const std::vector<Case> cases{
      {{}, 0},
      {{{0, 0, 8}}, 1},
      {{{0, 0, 8}, {8, 16, 8}}, 1},
      {{{0, 0, 8}, {8, 16, 9}}, 2},               // longer
      {{{0, 0, 8}, {8, 16, 8}, {17, 32, 8}}, 2},  // further apart where they go
      {{{0, 0, 8}, {8, 16, 8}, {16, 31, 8}}, 2},  // nearer where they lie
      {{{8, 16, 8}, {0, 0, 8}}, 2},               // backwards
      {{{0, 0, 8}, {8, 0, 8}}, 2},                // one source twice
      {{{0, 0, 8}, {7, 16, 8}}, 2},               // rows that overlap
      {{{0, 0, 0}, {8, 16, 0}}, 2},               // nothing to move
      {{{0, 0, 8}, {far - 1, 16, 8}}, 1},         // as far apart as a device takes
      {{{0, 0, 8}, {far, 16, 8}}, 2},
      {{{0, 0, 8}, {8, 16, 8}, {99, 1, 4}, {200, 50, 8}, {210, 60, 8}, {220, 70, 8}}, 3},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto pitched = pitched_copies(batch_of(cases[i].copies));
    EXPECT_EQ(pitched.size(), cases[i].calls) << i;
    EXPECT_EQ(rows_of(pitched), cases[i].copies) << i;
  }
}

TEST(PitchedCopies, AnyBatchKeepsItsCopies) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<Copy> copies;
    std::ptrdiff_t to = 0, from = 0;
    for (int i = 0; i < 40; ++i) {
      const std::size_t bytes = 4 + random() % 2;
      to += static_cast<std::ptrdiff_t>(random() % 3) * 5;
      from += static_cast<std::ptrdiff_t>(random() % 3) * 5 - 2;
      copies.emplace_back(to, from, bytes);
    }
    const auto pitched = pitched_copies(batch_of(copies));
    EXPECT_EQ(rows_of(pitched), copies);
    for (const PitchedCopy& copy : pitched) {
      if (copy.rows > 1) {
        EXPECT_GE(copy.to_pitch, copy.bytes);
        EXPECT_GE(copy.from_pitch, copy.bytes);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
