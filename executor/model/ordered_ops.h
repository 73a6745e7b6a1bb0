// Operators of a forward pass whose rows have the same bits in any batch (SumOrder::fixed).
//
// The rollout computes a token in whatever pass has room for it, the trainer in whatever
// micro-batch it lies; with these operators both give it the same numbers. On the CPU they are the
// loops of ordered_loops.h, in fp32; on a GPU the products of ordered_products.h, in bf16. No
// gradients; they allocate through torch alone and may be captured in a graph once a product's
// shape has run. On torch's current stream.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <optional>

#include "executor/tensor/rope.h"

namespace tessera {

/// x [rows, inputs] times weight [inputs, outputs], one of whose dims is dense: a matrix or its
/// transpose. The result has x's type unless told.
torch::Tensor ordered_product(const torch::Tensor& x, const torch::Tensor& weight,
                              std::optional<at::ScalarType> type = std::nullopt);

/// silu(gate) * up of fp32 column blocks on the CPU.
torch::Tensor ordered_swiglu(const torch::Tensor& gate, const torch::Tensor& up);

/// rope_table, each element by itself.
RopeTable ordered_rope_table(const torch::Tensor& frequencies, double attention_factor,
                             const torch::Tensor& positions, at::ScalarType dtype);

/// The log-prob that a draw of tokens[i] from logits row i (fp32) reports (rl/sampling.h); fp32
/// [rows], tokens int64 [rows].
torch::Tensor drawn_log_probs(const torch::Tensor& logits, const torch::Tensor& tokens,
                              double temperature);

}  // namespace tessera
