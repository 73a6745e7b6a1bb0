// What DeepSeek-V4's attention and residual streams keep for the backward pass in
// transformers 5.17, as saved_tensors.h counts it: private to that.
//
// Pure functions; any thread. `element`: bytes of an element of the residual stream.
#pragma once

#include "cost_models/spec/model_spec.h"
#include "cost_models/transformers/saved_tensors.h"

namespace tessera {

/// Of attention, its input excepted. Precondition: the model has compressed attention.
SavedBytes saved_by_compressed(const ModelSpec& model, LayerEntries entries, std::int64_t element);

/// Of one place where streams are weighed and mixed. Precondition: the model has several.
SavedBytes saved_by_streams(const ModelSpec& model, std::int64_t element);

/// Of what makes one of them behind the last layer.
SavedBytes saved_by_last_streams(const ModelSpec& model, std::int64_t element);

}  // namespace tessera
