// The certificate that vLLM's workers hold the trainer's weights (executor/certificate), block by
// block as rectangles of their parameters.
//
// Where a block lies in a worker comes from the layout algebra and vLLM's own placement
// (placement.h), not from the slices that brought it there. Pure functions; no torch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "executor/certificate/certificate.h"
#include "executor/vllm/placement.h"

namespace tessera {

/// A block, or a part of one, in a parameter of a worker. A vector has one column.
struct ServedRectangle {
  std::string parameter;
  Interval rows, columns;
  std::string tensor;                  // of the checkpoint
  std::int64_t corner = 0, pitch = 1;  // the corner's row-major place in it, and its columns
};

/// The model's tensors, as the ranks of `training` store them and as workers hold them: worker
/// `tp_rank` of a server is on rank `ranks[server][tp_rank]`. No `training`: rank 0 has them whole.
std::vector<ShardedTensor> served_tensors(const ParameterTable& table, const RankMap* training,
                                          DType dtype, std::span<const std::vector<int>> ranks);

/// Where the block lies in a worker that holds `parts` (vllm_parts). Precondition: it holds it.
ServedRectangle rectangle_of(const WeightCertificate& certificate, std::span<const VllmPart> parts,
                             const CertificateBlock& block);

/// A list for each worker of a server, as its tessera_keep_rectangles takes them.
std::string rectangles_json(std::span<const std::vector<ServedRectangle>> workers);

/// The digests of a worker's reply. Throws Error(check_failed) where there are not `count`.
std::vector<std::uint64_t> digests_in(const std::string& reply, std::size_t count);

/// Bytes from the first to the last of two elements in the row-major order of the worker's part of
/// their tensor.
ByteRange bytes_between(const VllmPart& part, const Box& first, const Box& last,
                        std::int64_t element_bytes);

}  // namespace tessera
