// MemoryOps: computations of a reshard on the weights themselves: casts for the wire, checksums and
// digests.
//
// Implemented for host memory here; for GPU memory by executor/tensor/torch_memory_ops.cc.
// Operations on device memory are ordered on the producer's stream; those that return numbers wait
// for it. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/spec/dtype.h"
#include "executor/kernels/weight_digest.h"

namespace tessera {

struct MemoryRange {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// How far a cast moves values: sums over elements, so that parts add up.
struct CastError {
  double squared_error = 0, squared_norm = 0;
};

class MemoryOps {
 public:
  virtual ~MemoryOps() = default;
  /// Between fp32, bf16 and fp16, to nearest even.
  virtual void cast(void* to, DType to_type, const void* from, DType from_type,
                    std::size_t count) = 0;
  /// From fp32 to bf16 or fp16, and adds what the cast moves to what take_cast_error() returns.
  virtual void cast_noting_error(void* to, DType to_type, const void* from, std::size_t count) = 0;
  /// Sums since the last call.
  virtual CastError take_cast_error() = 0;
  /// A 64-bit checksum of each range.
  virtual std::vector<std::uint64_t> checksums(std::span<const MemoryRange> ranges) = 0;
  /// The digest of each piece (executor/kernels/weight_digest.h), alike on host and device.
  virtual std::vector<std::uint64_t> digests(std::span<const kernels::DigestPiece> pieces,
                                             kernels::DigestRead read) = 0;
};

MemoryOps& host_memory_ops();

}  // namespace tessera
