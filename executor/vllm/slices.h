// Which bytes of the trainer's memory become which part of a vLLM worker's parameters.
//
// A slice is one contiguous range of a training rank's block (its stored weights, arena_layout.h),
// and a rectangle of a parameter. What a worker's own rank holds is taken there; replicas of the
// rest are taken in turn, so that senders share the work. Pure functions of the layouts; no torch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/dtype.h"
#include "executor/vllm/placement.h"

namespace tessera {

/// A parameter has one column where it is a vector.
struct VllmSlice {
  std::string parameter;
  Interval rows, columns;   // of the parameter
  bool transposed = false;  // in the block it lies as [columns, rows]
  int rank = 0;             // whose block
  std::int64_t offset = 0;  // bytes
  /// The checkpoint's tensor, the row-major place of the slice's corner in it, and its columns:
  /// what digests of the slice are taken by.
  std::string tensor;
  std::int64_t corner = 0, pitch = 1;

  bool operator==(const VllmSlice&) const = default;
};

/// Rows of a parameter that no tensor fills: they are zero.
struct VllmZeros {
  std::string parameter;
  Interval rows;

  bool operator==(const VllmZeros&) const = default;
};

struct VllmWorkerSlices {
  int rank = 0;  // of the run, on whose device the worker is
  std::vector<VllmSlice> slices;
  std::vector<VllmZeros> zeros;
  std::int64_t bytes = 0;        // of all slices
  std::int64_t bytes_moved = 0;  // of those from other ranks
  /// Where rounds of messages end among the slices (weight_messages.h); none = they are mapped.
  std::vector<std::int64_t> rounds;
};

/// The slices of the worker `tp_rank` of `tp`, which is on the device of run rank `rank`, out of
/// the weights that the ranks of `training` store with elements of type `dtype`.
VllmWorkerSlices vllm_slices(const ParameterTable& table, const RankMap& training, DType dtype,
                             int tp, int tp_rank, int rank);

/// What a rank of the run tells about its block, for workers to map.
struct VllmBlock {
  std::string socket;  // block_giver.h; empty: the rank has no block
  std::int64_t bytes = 0;
};

struct VllmLinkTable;

/// The table of a server as JSON, as integrations/vllm reads it: a worker an entry, by tp_rank.
/// Weights are mapped from `blocks`, by run rank, or come over the link.
std::string vllm_table_json(std::span<const VllmWorkerSlices> workers,
                            const std::vector<VllmBlock>& blocks, DType dtype, bool on_gpu);
std::string vllm_table_json(std::span<const VllmWorkerSlices> workers, const VllmLinkTable& link,
                            DType dtype, bool on_gpu);

}  // namespace tessera
