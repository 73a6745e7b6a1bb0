// Experts, latent attention and vision tower of a ModelSpec in plan.json, for model_document.cc.
#pragma once

#include "cost_models/spec/model_spec.h"
#include "cost_models/documents/object_reader.h"

namespace tessera {

/// Keys "moe", "mla" and "vision": a map, or null where the model has none. Parts that the family
/// has and the file lacks, or the other way round, are Problems.
void read_parts(ObjectReader& reader, ModelSpec& model);
void add_parts(Node& node, const ModelSpec& model);

Node list_of(const std::vector<std::int64_t>& values);

}  // namespace tessera
