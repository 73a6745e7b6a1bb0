// Weights of two folders side by side: which tensors differ, and in which bytes.
//
// Bytes are compared themselves, so that equal means equal. Free functions and plain values.
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
  /// compared type; how many elements differ; and how many bytes the tensor has.
  ByteRange bytes;
  std::int64_t elements = 0, tensor_bytes = 0;
  bool operator==(const TensorComparison&) const = default;
};

struct WeightComparison {
  std::string a, b;                           // the folders
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
