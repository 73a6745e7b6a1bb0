#include "cost_models/layout/box.h"

#include <algorithm>

#include "cost_models/documents/check.h"

namespace tessera {

Box whole(std::span<const std::int64_t> shape) {
  TESSERA_CHECK(shape.size() <= kMaxTensorRank);
  Box box;
  box.rank = static_cast<int>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) box.dims[d] = {0, shape[d]};
  return box;
}

Box restricted(Box box, int dim, Interval range) {
  TESSERA_CHECK(dim >= 0 && dim < box.rank);
  Interval& side = box.dims[static_cast<size_t>(dim)];
  side = intersect(side, range);
  return box;
}

Box intersect(const Box& a, const Box& b) {
  TESSERA_CHECK(a.rank == b.rank);
  Box common = a;
  for (size_t d = 0; d < static_cast<size_t>(a.rank); ++d) {
    common.dims[d] = intersect(a.dims[d], b.dims[d]);
  }
  return common;
}

std::int64_t volume(const Box& box) {
  std::int64_t elements = 1;
  for (size_t d = 0; d < static_cast<size_t>(box.rank); ++d) elements *= box.dims[d].size();
  return elements;
}

std::vector<Box> subtract(const Box& a, const Box& b) {
  if (volume(a) == 0) return {};
  const Box common = intersect(a, b);
  if (volume(common) == 0) return {a};
  // Peel slabs below and above `common`, one dimension after the other; what is left is `common`.
  std::vector<Box> below, above;
  Box rest = a;
  for (size_t d = 0; d < static_cast<size_t>(a.rank); ++d) {
    Box slab = rest;
    slab.dims[d] = {rest.dims[d].lo, common.dims[d].lo};
    if (!slab.dims[d].empty()) below.push_back(slab);
    slab.dims[d] = {common.dims[d].hi, rest.dims[d].hi};
    if (!slab.dims[d].empty()) above.push_back(slab);
    rest.dims[d] = common.dims[d];
  }
  below.insert(below.end(), above.rbegin(), above.rend());
  return below;
}

}  // namespace tessera
