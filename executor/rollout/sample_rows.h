// Draws from rows of logits that live in a tensor: on the host by sampling.h, on any device by the
// same rule in tensor operations, so that equal logits give equal tokens on either.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>
#include <vector>

#include "executor/rl/sampling.h"

namespace tessera {

/// Draw i is from row rows[i] of `logits` (fp32 [n, vocabulary], on the CPU) with uniforms[i].
/// Throws as draw().
std::vector<Draw> sample_rows(const torch::Tensor& logits, std::span<const std::int64_t> rows,
                              std::span<const double> uniforms, const SamplingOptions& options);

/// Draws on a device.
struct DrawnRows {
  torch::Tensor tokens;     // int32 [draws]; -1 where the row is no row of logits
  torch::Tensor log_probs;  // fp32 [draws]
};
/// The same by tensor operations, without waiting for the device; rows int64, uniforms fp64
/// [draws], beside the logits.
DrawnRows draw_rows(const torch::Tensor& logits, const torch::Tensor& rows,
                    const torch::Tensor& uniforms, const SamplingOptions& options);
/// Their values on the host. Throws as draw().
std::vector<Draw> draws_of(const DrawnRows& drawn);

}  // namespace tessera
