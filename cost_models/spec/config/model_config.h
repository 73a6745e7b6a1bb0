// The parts of a Hugging Face config.json, for parse_model_spec alone. Every function reads its
// keys, appends Problems, and leaves in `spec` what could be read.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/object_reader.h"
#include "cost_models/spec/families.h"

namespace tessera {

inline constexpr Whole kConfigSize{.least = 1, .most = std::int64_t{1} << 31};
inline constexpr Whole kConfigLayers{.least = 1, .most = 1 << 16};

void read_window(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
void read_rope(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// Experts, for the families that have them.
void read_moe(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// How many layers predict further tokens.
void read_mtp(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// Latent attention; sets head_dim and kv_heads.
void read_mla(ObjectReader& reader, ModelSpec& spec);
/// Which keys latent attention looks at. Precondition: it was read.
void read_indexer(ObjectReader& reader, ModelSpec& spec);
/// A window, entries and who chooses them, and residual streams (DeepSeek-V4).
void read_compressed(ObjectReader& reader, ModelSpec& spec);
/// Linear attention, and which layers have attention of all tokens instead.
void read_linear(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// What each layer is, of a model whose layers are one block each; sets `layers`.
void read_blocks(ObjectReader& reader, ModelSpec& spec);
/// State-space mixers, where a block is one. Precondition: the blocks are read.
void read_state_space(ObjectReader& reader, ModelSpec& spec);
/// Refuses weights that are stored otherwise than in one type or fp8.
void check_stored_weights(ObjectReader& root);
void read_vision(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);

/// "layer_types", one entry per layer, or empty where the file has none. Kinds that `known` does
/// not name are refused by their name.
std::vector<std::string> read_layer_types(ObjectReader& reader, std::int64_t layers,
                                          std::initializer_list<std::string_view> known);

}  // namespace tessera
