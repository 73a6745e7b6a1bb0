#include "cost_models/spec/dtype.h"

#include <array>

#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

struct Spelling {
  DType type;
  std::string_view ours, torch, safetensors;
};

constexpr std::array<Spelling, 6> kSpellings{{
    {DType::fp32, "fp32", "float32", "F32"},
    {DType::bf16, "bf16", "bfloat16", "BF16"},
    {DType::fp16, "fp16", "float16", "F16"},
    {DType::int64, "int64", "long", "I64"},
    {DType::int32, "int32", "int", "I32"},
    {DType::uint8, "uint8", "byte", "U8"},
}};
static_assert(has_enumerators<DType, kSpellings.size()>());

}  // namespace

std::string_view name_of(DType type) { return kSpellings[static_cast<size_t>(type)].ours; }

std::optional<DType> dtype_from(std::string_view name) {
  for (const Spelling& spelling : kSpellings) {
    if (name == spelling.ours || name == spelling.torch || name == spelling.safetensors) {
      return spelling.type;
    }
  }
  return std::nullopt;
}

}  // namespace tessera
