// Element types of weights, gradients, optimizer states, caches and messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class DType : std::uint8_t { fp32, bf16, fp16, int64, int32, uint8 };

/// Size of one element in bytes.
constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::int64:
      return 8;
    case DType::fp32:
    case DType::int32:
      return 4;
    case DType::bf16:
    case DType::fp16:
      return 2;
    case DType::uint8:
      return 1;
  }
  return 0;
}

/// Our own spelling ("fp32", "bf16", ...), as plan.json and run.yaml write it.
std::string_view name_of(DType type);

/// Reads our spelling, torch's ("bfloat16", "float32") and safetensors' ("BF16", "F32").
std::optional<DType> dtype_from(std::string_view name);

}  // namespace tessera
