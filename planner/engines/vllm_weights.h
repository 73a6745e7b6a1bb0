// Which models and layouts vLLM can hold when a run brings it the weights.
//
// These rules are vLLM 0.24.0's: model_executor/layers/linear.py (QKVParallelLinear,
// MergedColumnParallelLinear) and layers/vocab_parallel_embedding.py. The planner refuses by them,
// and executor/vllm places tensors by them. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// Rows of the vocabulary as vLLM's embedding and head hold them.
std::int64_t vllm_padded_vocab(std::int64_t rows);

/// Why vLLM cannot hold the model under this layout, one sentence a reason; empty: it can.
std::vector<std::string> vllm_refusals(const ModelSpec& model, const ParallelLayout& layout);

}  // namespace tessera
