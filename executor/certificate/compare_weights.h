// Weights of two folders side by side: which tensors differ, and in which bytes.
//
// Bytes are compared themselves, so that equal means equal. Weights of running servers are compared
// by digests (executor/vllm/verify), with the same words. Free functions and plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/arena/arena_layout.h"
#include "executor/certificate/stored_weights.h"

namespace tessera {

enum class TensorFault : std::uint8_t { only_in_a, only_in_b, shape, dtype, values };

struct TensorComparison {
  std::string name;
  TensorFault fault = TensorFault::values;
  std::string a, b;  // shapes or types, where these differ
  /// Of values: from the first to the last differing element of the whole tensor, row-major in the
  /// compared type; how many elements differ, 0 where digests were compared, which do not count
  /// them; and how many bytes the tensor has.
  ByteRange bytes;
  std::int64_t elements = 0, tensor_bytes = 0;
  /// The workers that hold the values, of a server; -1: a folder has them.
  int worker_a = -1, worker_b = -1;
  bool operator==(const TensorComparison&) const = default;
};

struct WeightComparison {
  std::string a, b;                           // the folders, or addresses of servers
  std::int64_t tensors = 0, bytes = 0;        // that were compared
  std::vector<TensorComparison> differences;  // by name
};

/// Compares tensors by name, with several threads. `as`: floating-point weights of both are rounded
/// to this type first; without it types must be equal. A tied lm_head.weight that one folder does
/// not have is its embedding. Tables of rotary frequencies (inv_freq) are left out.
WeightComparison compare_weights(const StoredWeights& a, const StoredWeights& b,
                                 std::optional<DType> as = std::nullopt);

/// For people, a line for each difference and one at the end; and for programs.
std::string to_text(const WeightComparison& comparison);
std::string to_json(const WeightComparison& comparison);

}  // namespace tessera
