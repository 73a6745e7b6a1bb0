#include "executor/comm/reduce.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace tessera {
namespace {

constexpr std::size_t kBlock = 2048;  // elements; accumulator and inputs stay in the L1 cache

template <class Accumulator>
void fold(Accumulator& into, Accumulator value, ReduceOp op) {
  into = op == ReduceOp::sum ? static_cast<Accumulator>(into + value) : std::max(into, value);
}

template <class T, class Accumulator>
void reduce_as(void* out, std::span<const void* const> inputs, std::size_t count, ReduceOp op) {
  std::array<Accumulator, kBlock> sums;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const T* first = static_cast<const T*>(inputs[0]) + begin;
    for (std::size_t i = 0; i < n; ++i) sums[i] = static_cast<Accumulator>(first[i]);
    for (const void* input : inputs.subspan(1)) {
      const T* values = static_cast<const T*>(input) + begin;
      for (std::size_t i = 0; i < n; ++i) fold(sums[i], static_cast<Accumulator>(values[i]), op);
    }
    T* result = static_cast<T*>(out) + begin;
    for (std::size_t i = 0; i < n; ++i) result[i] = static_cast<T>(sums[i]);
  }
}

}  // namespace

void reduce_blocks(void* out, std::span<const void* const> inputs, std::size_t count, DType type,
                   ReduceOp op) {
  if (inputs.size() == 1) {
    const std::size_t bytes = count * static_cast<std::size_t>(size_of(type));
    if (out != inputs[0] && bytes != 0) std::memmove(out, inputs[0], bytes);
    return;
  }
  switch (type) {
    case DType::fp32:
      return reduce_as<float, float>(out, inputs, count, op);
    case DType::bf16:
      return reduce_as<Eigen::bfloat16, float>(out, inputs, count, op);
    case DType::fp16:
      return reduce_as<Eigen::half, float>(out, inputs, count, op);
    // Unsigned accumulators: sums wrap instead of overflowing; max needs the sign.
    case DType::int64:
      return op == ReduceOp::sum ? reduce_as<std::uint64_t, std::uint64_t>(out, inputs, count, op)
                                 : reduce_as<std::int64_t, std::int64_t>(out, inputs, count, op);
    case DType::int32:
      return op == ReduceOp::sum ? reduce_as<std::uint32_t, std::uint32_t>(out, inputs, count, op)
                                 : reduce_as<std::int32_t, std::int32_t>(out, inputs, count, op);
    case DType::uint8:
      return reduce_as<std::uint8_t, std::uint8_t>(out, inputs, count, op);
  }
}

}  // namespace tessera
