#include "executor/arena/memory_ops.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <Eigen/Core>
#include <cstring>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

template <class To, class From>
void cast_elements(void* to, const void* from, std::size_t count) {
  const auto* in = static_cast<const From*>(from);
  auto* out = static_cast<To*>(to);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<To>(static_cast<float>(in[i]));
}

template <class From>
void cast_from(void* to, DType to_type, const void* from, std::size_t count) {
  if (to_type == DType::fp32) return cast_elements<float, From>(to, from, count);
  if (to_type == DType::bf16) return cast_elements<Eigen::bfloat16, From>(to, from, count);
  TESSERA_CHECK(to_type == DType::fp16);
  cast_elements<Eigen::half, From>(to, from, count);
}

class HostMemoryOps final : public MemoryOps {
 public:
  void cast(void* to, DType to_type, const void* from, DType from_type,
            std::size_t count) override {
    if (to_type == from_type) {
      std::memcpy(to, from, count * static_cast<std::size_t>(size_of(to_type)));
    } else if (from_type == DType::fp32) {
      cast_from<float>(to, to_type, from, count);
    } else if (from_type == DType::bf16) {
      cast_from<Eigen::bfloat16>(to, to_type, from, count);
    } else {
      TESSERA_CHECK(from_type == DType::fp16);
      cast_from<Eigen::half>(to, to_type, from, count);
    }
  }

  void cast_noting_error(void* to, DType to_type, const void* from, std::size_t count) override {
    cast(to, to_type, from, DType::fp32, count);
    const auto* in = static_cast<const float*>(from);
    CastError error;
    for (std::size_t i = 0; i < count; ++i) {
      const float rounded = to_type == DType::bf16
                                ? static_cast<float>(static_cast<Eigen::bfloat16>(in[i]))
                                : static_cast<float>(static_cast<Eigen::half>(in[i]));
      const double difference = static_cast<double>(rounded) - in[i];
      error.squared_error += difference * difference;
      error.squared_norm += static_cast<double>(in[i]) * in[i];
    }
    noted().squared_error += error.squared_error;
    noted().squared_norm += error.squared_norm;
  }

  CastError take_cast_error() override { return std::exchange(noted(), {}); }

  std::vector<std::uint64_t> checksums(std::span<const MemoryRange> ranges) override {
    std::vector<std::uint64_t> sums;
    sums.reserve(ranges.size());
    for (const MemoryRange& range : ranges) sums.push_back(XXH3_64bits(range.data, range.bytes));
    return sums;
  }

  std::vector<std::uint64_t> digests(std::span<const kernels::DigestPiece> pieces,
                                     kernels::DigestRead read) override {
    std::vector<std::uint64_t> sums;
    sums.reserve(pieces.size());
    for (const kernels::DigestPiece& piece : pieces) {
      sums.push_back(kernels::piece_digest(piece, read));
    }
    return sums;
  }

 private:
  /// One object serves all ranks that are threads.
  static CastError& noted() {
    thread_local CastError error;
    return error;
  }
};

}  // namespace

MemoryOps& host_memory_ops() {
  static HostMemoryOps ops;
  return ops;
}

}  // namespace tessera
