// Where a tensor-parallel worker of vLLM keeps each tensor of the checkpoint.
//
// vLLM joins q, k and v, and gate and up, to one parameter each; it holds a KV head on several
// workers where there are more of them than heads, and pads the vocabulary. These rules are vLLM
// 0.24.0's: model_executor/layers/linear.py (QKVParallelLinear, MergedColumnParallelLinear,
// RowParallelLinear) and layers/vocab_parallel_embedding.py. Elements. Pure functions; no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/layout/box.h"
#include "cost_models/layout/parameter_table.h"

namespace tessera {

/// A part of a table row, and where it lies in the worker's parameter: from index `at` of the
/// dim that `box` cuts, with the checkpoint's order of dims.
struct VllmPart {
  int row = 0;            // of the table
  std::string parameter;  // vLLM's name
  Box box;                // of the checkpoint's tensor; may be empty
  int dim = 0;
  std::int64_t at = 0;
  std::int64_t zeros = 0;  // rows behind the part that pad the vocabulary
};

/// What the worker `tp_rank` of `tp` holds, in table order. Precondition: vllm_refusals
/// (planner/engines/vllm_weights.h) is empty.
std::vector<VllmPart> vllm_parts(const ParameterTable& table, int tp, int tp_rank);

}  // namespace tessera
