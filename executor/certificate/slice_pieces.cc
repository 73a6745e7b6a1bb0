#include "executor/certificate/slice_pieces.h"

#include <algorithm>
#include <array>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

using kernels::DigestPiece;
using kernels::kDigestStep;

/// A dim of a box: its size, and the steps of one index in the part's memory and in the tensor.
struct Dim {
  std::int64_t size = 1, memory = 1, tensor = 1;
};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<int> memory_order(const HeldPart& part) {
  std::vector<int> order;
  if (part.box.rank > 0) order.push_back(part.outer_dim);
  for (int dim = 0; dim < part.box.rank; ++dim) {
    if (dim != part.outer_dim) order.push_back(dim);
  }
  return order;
}

/// The box's dims in memory order. Empty for a scalar.
std::vector<Dim> dims_of(const HeldPart& part, const Box& box,
                         std::span<const std::int64_t> shape) {
  std::array<std::int64_t, kMaxTensorRank> tensor{};
  std::int64_t below = 1;
  for (int dim = box.rank; dim-- > 0;) {
    tensor[index(dim)] = below;
    below *= shape[index(dim)];
  }
  const std::vector<int> order = memory_order(part);
  std::vector<Dim> dims(order.size());
  below = 1;
  for (std::size_t at = order.size(); at-- > 0;) {
    const std::size_t dim = index(order[at]);
    dims[at] = {box.dims[dim].size(), below, tensor[dim]};
    below *= part.box.dims[dim].size();
  }
  return dims;
}

/// Without dims of one index, and with neighbours joined that memory and tensor both run through
/// without a break. At least two dims, the last of them adjacent in memory.
std::vector<Dim> joined(const std::vector<Dim>& dims) {
  std::vector<Dim> out;
  for (const Dim& dim : dims) {
    if (dim.size == 1) continue;
    if (!out.empty() && out.back().memory == dim.size * dim.memory &&
        out.back().tensor == dim.size * dim.tensor) {
      out.back() = {out.back().size * dim.size, dim.memory, dim.tensor};
    } else {
      out.push_back(dim);
    }
  }
  if (out.empty() || out.back().memory != 1) out.push_back({});
  if (out.size() == 1) out.insert(out.begin(), Dim{});
  return out;
}

const void* element_at(const void* data, std::int64_t element, std::int64_t element_bytes) {
  return static_cast<const std::byte*>(data) + element * element_bytes;
}

}  // namespace

std::uint64_t digest_seed(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return kernels::digest_mix(hash);
}

std::vector<DigestPiece> slice_pieces(const HeldPart& part, const Box& box,
                                      std::span<const std::int64_t> shape, std::uint64_t seed) {
  TESSERA_CHECK(intersect(part.box, box) == box);
  if (volume(box) == 0) return {};
  std::int64_t position = 0;  // of the box's corner in the tensor
  for (int dim = 0; dim < box.rank; ++dim) {
    position = position * shape[index(dim)] + box.dims[index(dim)].lo;
  }
  const std::int64_t place = place_in(part, box, 0);
  const std::vector<Dim> dims = joined(dims_of(part, box, shape));
  const Dim &rows = dims[dims.size() - 2], &columns = dims.back();
  std::int64_t planes = 1;
  for (std::size_t at = 0; at + 2 < dims.size(); ++at) planes *= dims[at].size;
  std::vector<DigestPiece> pieces;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    std::int64_t from = place, first = position, left = plane;
    for (std::size_t at = dims.size() - 2; at-- > 0;) {
      from += left % dims[at].size * dims[at].memory;
      first += left % dims[at].size * dims[at].tensor;
      left /= dims[at].size;
    }
    pieces.push_back({.data = element_at(part.data, from, part.element_bytes),
                      .rows = rows.size,
                      .columns = columns.size,
                      .pitch = rows.memory,
                      .key = seed + static_cast<std::uint64_t>(first) * kDigestStep,
                      .row_step = static_cast<std::uint64_t>(rows.tensor) * kDigestStep,
                      .column_step = static_cast<std::uint64_t>(columns.tensor) * kDigestStep});
  }
  return pieces;
}

std::vector<DigestPiece> cut_pieces(std::span<const DigestPiece> pieces, Interval range,
                                    std::int64_t element_bytes) {
  std::vector<DigestPiece> out;
  std::int64_t first = 0;  // element that the piece begins with
  for (const DigestPiece& piece : pieces) {
    const std::int64_t count = piece.rows * piece.columns;
    const Interval part =
        intersect(Interval{range.lo - first, range.hi - first}, Interval{0, count});
    first += count;
    for (std::int64_t at = part.lo; at < part.hi;) {
      const std::int64_t row = at / piece.columns, column = at % piece.columns;
      const bool whole = column == 0 && part.hi - at >= piece.columns;
      DigestPiece cut = piece;
      cut.rows = whole ? (part.hi - at) / piece.columns : 1;
      cut.columns = whole ? piece.columns : std::min(piece.columns - column, part.hi - at);
      cut.data = element_at(piece.data, row * piece.pitch + column, element_bytes);
      cut.key += static_cast<std::uint64_t>(row) * piece.row_step +
                 static_cast<std::uint64_t>(column) * piece.column_step;
      out.push_back(cut);
      at += cut.rows * cut.columns;
    }
  }
  return out;
}

std::int64_t place_in(const HeldPart& part, const Box& box, std::int64_t element) {
  const std::vector<int> order = memory_order(part);
  std::int64_t place = 0, below = 1;
  for (std::size_t at = order.size(); at-- > 0;) {
    const std::size_t dim = index(order[at]);
    const std::int64_t size = box.dims[dim].size();
    place += (box.dims[dim].lo - part.box.dims[dim].lo + element % size) * below;
    element /= size;
    below *= part.box.dims[dim].size();
  }
  return place;
}

}  // namespace tessera
