#include "executor/checkpoint/tensor_box.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::int64_t kTile = 32;  // transposed copies go tile by tile to stay in cache

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero and subnormals
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves round(value * 2^24) in the bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

float from_brain(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t to_brain(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <DType type>
float load_float(const std::byte* at) {
  if constexpr (type == DType::fp32) return load<float>(at);
  if constexpr (type == DType::bf16) return from_brain(load<std::uint16_t>(at));
  if constexpr (type == DType::fp16) return from_half(load<std::uint16_t>(at));
}

template <DType type>
void store_float(std::byte* at, float value) {
  if constexpr (type == DType::fp32) store(at, value);
  if constexpr (type == DType::bf16) store(at, to_brain(value));
  if constexpr (type == DType::fp16) store(at, to_half(value));
}

/// Copies `count` elements, `step` source elements apart, to consecutive places.
using Run = void (*)(const std::byte* source, std::int64_t step, std::byte* destination,
                     std::int64_t count);

template <DType from, DType to>
void convert_run(const std::byte* source, std::int64_t step, std::byte* destination,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    store_float<to>(destination + i * size_of(to),
                    load_float<from>(source + i * step * size_of(from)));
  }
}

template <class T>
void copy_run(const std::byte* source, std::int64_t step, std::byte* destination,
              std::int64_t count) {
  if (step == 1) {
    std::memcpy(destination, source, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  const auto width = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    store(destination + i * width, load<T>(source + i * step * width));
  }
}

/// The run for a pair of types, or null where they do not convert.
Run run_for(DType from, DType to) {
  if (from == to) {
    switch (size_of(from)) {
      case 8:
        return copy_run<std::uint64_t>;
      case 4:
        return copy_run<std::uint32_t>;
      case 2:
        return copy_run<std::uint16_t>;
      default:
        return copy_run<std::uint8_t>;
    }
  }
  if (from == DType::fp32 && to == DType::bf16) return convert_run<DType::fp32, DType::bf16>;
  if (from == DType::fp32 && to == DType::fp16) return convert_run<DType::fp32, DType::fp16>;
  if (from == DType::bf16 && to == DType::fp32) return convert_run<DType::bf16, DType::fp32>;
  if (from == DType::bf16 && to == DType::fp16) return convert_run<DType::bf16, DType::fp16>;
  if (from == DType::fp16 && to == DType::fp32) return convert_run<DType::fp16, DType::fp32>;
  if (from == DType::fp16 && to == DType::bf16) return convert_run<DType::fp16, DType::bf16>;
  return nullptr;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + "]";
}

bool inside(const Box& box, const std::vector<std::int64_t>& shape) {
  if (box.rank != static_cast<int>(shape.size())) return false;
  for (int d = 0; d < box.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (box.dims[at].lo < 0 || box.dims[at].hi > shape[at]) return false;
  }
  return true;
}

/// Sizes and source strides (elements) of a box in memory order, padded in front to full rank.
struct Walk {
  std::array<std::int64_t, kMaxTensorRank> size{}, stride{};
  std::int64_t first = 0;  // source element of the box's corner
};

Walk walk_of(const TensorView& tensor, const Box& box, int outer_dim) {
  std::array<std::int64_t, kMaxTensorRank> stride{};
  std::int64_t next = 1;
  for (int d = box.rank - 1; d >= 0; --d) {
    stride[static_cast<std::size_t>(d)] = next;
    next *= tensor.shape[static_cast<std::size_t>(d)];
  }
  Walk walk;
  walk.size.fill(1);
  std::size_t at = static_cast<std::size_t>(kMaxTensorRank - box.rank);
  const auto add = [&](int dim) {
    const auto d = static_cast<std::size_t>(dim);
    walk.size[at] = box.dims[d].size();
    walk.stride[at] = stride[d];
    walk.first += box.dims[d].lo * stride[d];
    ++at;
  };
  if (box.rank > 0) add(outer_dim);
  for (int d = 0; d < box.rank; ++d) {
    if (d != outer_dim) add(d);
  }
  return walk;
}

/// A 2-D copy of rows x columns whose source columns are `column_stride` apart.
struct Plane {
  std::int64_t rows, columns, row_stride, column_stride, destination_row;
};

void copy_plane(Run run, const std::byte* source, std::int64_t from_bytes, std::byte* destination,
                std::int64_t to_bytes, const Plane& plane) {
  const std::int64_t width = plane.column_stride == 1 ? plane.columns : kTile;
  for (std::int64_t column = 0; column < plane.columns; column += width) {
    const std::int64_t count = std::min(width, plane.columns - column);
    for (std::int64_t row = 0; row < plane.rows; ++row) {
      run(source + (row * plane.row_stride + column * plane.column_stride) * from_bytes,
          plane.column_stride, destination + (row * plane.destination_row + column) * to_bytes,
          count);
    }
  }
}

}  // namespace

bool read_box(const TensorView& tensor, const Box& box, int outer_dim, void* destination,
              DType dtype, Problems& problems) {
  const Run run = run_for(tensor.dtype, dtype);
  if (run == nullptr) {
    problems.push_back({.file = tensor.file,
                        .place = tensor.name,
                        .found = std::string(name_of(tensor.dtype)),
                        .expected = "a type that converts to " + std::string(name_of(dtype))});
    return false;
  }
  if (!inside(box, tensor.shape)) {
    problems.push_back({.file = tensor.file,
                        .place = tensor.name,
                        .found = "shape " + shape_text(tensor.shape),
                        .expected = "a tensor that holds the part this rank needs"});
    return false;
  }
  TESSERA_CHECK(box.rank == 0 || (outer_dim >= 0 && outer_dim < box.rank));
  const Walk walk = walk_of(tensor, box, outer_dim);
  const std::int64_t from_bytes = size_of(tensor.dtype), to_bytes = size_of(dtype);
  // Memory order is a, b, ..., y, z. Where the last dim is the outer one, (a, z) is a transposed
  // plane; every other order keeps the source's last dim last, so (y, z) has contiguous rows.
  constexpr std::size_t kLast = kMaxTensorRank - 1;
  const bool transposed = box.rank > 1 && outer_dim == box.rank - 1;
  const std::size_t outer =
      transposed ? static_cast<std::size_t>(kMaxTensorRank - box.rank) : kLast - 1;
  std::array<std::int64_t, kMaxTensorRank> destination_stride{};
  std::int64_t next = 1;
  for (std::size_t d = kMaxTensorRank; d-- > 0;) {
    destination_stride[d] = next;
    next *= walk.size[d];
  }
  auto rest = walk.size;
  rest[outer] = rest[kLast] = 1;
  const Plane plane{.rows = walk.size[outer],
                    .columns = walk.size[kLast],
                    .row_stride = walk.stride[outer],
                    .column_stride = walk.stride[kLast],
                    .destination_row = destination_stride[outer]};
  std::int64_t planes = 1;
  for (const std::int64_t size : rest) planes *= size;
  auto* const to = static_cast<std::byte*>(destination);
  for (std::int64_t index = 0; index < planes; ++index) {
    std::int64_t source = walk.first, target = 0, left = index;
    for (std::size_t d = kLast; d-- > 0;) {
      const std::int64_t at = left % rest[d];
      left /= rest[d];
      source += at * walk.stride[d];
      target += at * destination_stride[d];
    }
    copy_plane(run, tensor.data.data() + source * from_bytes, from_bytes, to + target * to_bytes,
               to_bytes, plane);
  }
  return true;
}

void convert_elements(const void* source, DType from, void* destination, DType to,
                      std::int64_t count) {
  const Run run = run_for(from, to);
  TESSERA_CHECK(run != nullptr);
  run(static_cast<const std::byte*>(source), 1, static_cast<std::byte*>(destination), count);
}

}  // namespace tessera
