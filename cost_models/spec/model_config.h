// The parts of a Hugging Face config.json, for parse_model_spec alone. Every function reads its
// keys, appends Problems, and leaves in `spec` what could be read.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "cost_models/spec/families.h"

namespace tessera {

inline constexpr Whole kConfigSize{.least = 1, .most = std::int64_t{1} << 31};
inline constexpr Whole kConfigLayers{.least = 1, .most = 1 << 16};

void read_window(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
void read_rope(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// Experts, for the families that have them, and how many layers predict further tokens.
void read_moe(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// Latent attention; sets head_dim and kv_heads.
void read_mla(ObjectReader& reader, ModelSpec& spec);
void read_vision(ObjectReader& reader, ModelSpec& spec);

}  // namespace tessera
