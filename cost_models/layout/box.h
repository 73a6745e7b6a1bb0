// An axis-aligned region of a tensor in logical (checkpoint) coordinates, counted in elements.
//
// A plain value. Rank 0 is a scalar with one element; an empty box covers nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/spec/split.h"

namespace tessera {

inline constexpr int kMaxTensorRank = 5;  // the patch embedding of a vision tower

struct Box {
  std::array<Interval, kMaxTensorRank> dims{};
  int rank = 0;

  bool operator==(const Box&) const = default;
};

/// The whole tensor. Precondition: shape.size() <= kMaxTensorRank.
Box whole(std::span<const std::int64_t> shape);

/// `box` with dimension `dim` cut to `range`.
Box restricted(Box box, int dim, Interval range);

/// Common part of two boxes of equal rank; empty boxes have volume 0.
Box intersect(const Box& a, const Box& b);

/// Elements of a box.
std::int64_t volume(const Box& box);

/// `a` minus `b` as disjoint boxes, in ascending order (at most 2 x rank of them).
std::vector<Box> subtract(const Box& a, const Box& b);

}  // namespace tessera
