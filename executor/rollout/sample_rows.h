// Draws from rows of logits that live in a tensor: on the host by sampling.h, on a GPU by the same
// rule in tensor operations, so that equal logits give equal tokens on either.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>
#include <vector>

#include "executor/rl/sampling.h"

namespace tessera {

/// Draw i is from row rows[i] of `logits` (fp32 [n, vocabulary]) with uniforms[i]. One copy from
/// the device. Throws as draw().
std::vector<Draw> sample_rows(const torch::Tensor& logits, std::span<const std::int64_t> rows,
                              std::span<const double> uniforms, const SamplingOptions& options);

/// The tensor operations that sample_rows uses on a GPU; they work on any device.
std::vector<Draw> sample_rows_on_device(const torch::Tensor& logits,
                                        std::span<const std::int64_t> rows,
                                        std::span<const double> uniforms,
                                        const SamplingOptions& options);

}  // namespace tessera
