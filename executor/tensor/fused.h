// The CUDA kernels of executor/kernels on tensors: what the layer operators call where they can.
//
// Every function's reference is the LibTorch path of the operator that calls it. Contiguity is the
// caller's duty where a comment says so. On torch's current stream; one thread per device.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::fused {

/// Kernels were built, are not switched off, and take tensors of x's device and type (CUDA; fp32 or
/// bf16).
bool usable(const torch::Tensor& x);

/// For comparisons: false makes every operator take its LibTorch path. Process-wide.
void enable(bool on);

struct Normed {
  torch::Tensor sum, y, r;  // x + residual (x itself without one), the norm, fp32 [rows]
};
Normed rms_norm(const torch::Tensor& x, const torch::Tensor& residual, const torch::Tensor& weight,
                double epsilon);

/// Gradient by x, `passed` added (undefined: none); adds to the fp32 `weight_gradient`.
torch::Tensor rms_norm_backward(const torch::Tensor& gradient, const torch::Tensor& passed,
                                const torch::Tensor& x, const torch::Tensor& weight,
                                const torch::Tensor& r, const torch::Tensor& weight_gradient);

/// x [tokens, heads, dim] with dense heads; the result is contiguous.
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                     bool back);

/// gate and up: [rows, columns] of one row stride.
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);
struct GatePair {
  torch::Tensor gate, up;  // column blocks of one [rows, 2 * columns]
};
GatePair swiglu_backward(const torch::Tensor& gradient, const torch::Tensor& gate,
                         const torch::Tensor& up);

struct VocabularySums {
  torch::Tensor highest, sum, weighted, picked;  // fp32 [rows]; see kernels.h
};
VocabularySums vocabulary_sums(const torch::Tensor& logits, const torch::Tensor& target,
                               double temperature);
/// In place on contiguous logits; `g_entropy` may be undefined.
void vocabulary_gradient_(torch::Tensor& logits, const torch::Tensor& target, double temperature,
                          const torch::Tensor& normalizer, const torch::Tensor& entropy,
                          const torch::Tensor& g_score, const torch::Tensor& g_entropy);

/// Lengths and offsets of one batch for cuDNN's packed attention.
struct AttentionBatch {
  torch::Tensor lengths, starts;  // int32 [sequences], [sequences + 1], rounded up
  std::int64_t longest = 0, tokens = 0;
  // Undefined: causal attention of tokens to themselves. Else every query sees all keys.
  torch::Tensor key_lengths, key_starts;
  std::int64_t longest_keys = 0, keys = 0;

  bool causal() const { return !key_lengths.defined(); }
};
/// Packed attention runs on this device for heads of this size.
bool attention_usable(torch::Device device, at::ScalarType type, std::int64_t head_dim);
AttentionBatch attention_batch(const std::vector<std::int64_t>& lengths, torch::Device device);
/// Sequence i's queries attend to `lengths[i]` other keys.
void set_keys(AttentionBatch& batch, const std::vector<std::int64_t>& lengths,
              torch::Device device);

/// q [tokens, heads, dim], k and v [tokens, kv heads, dim], heads dense; [tokens, heads, dim] and
/// what the backward pass needs besides.
struct Attended {
  torch::Tensor out, stats;
};
Attended attend(const AttentionBatch& batch, const torch::Tensor& q, const torch::Tensor& k,
                const torch::Tensor& v, std::int64_t window);
struct HeadGradients {
  torch::Tensor q, k, v;
};
HeadGradients attend_backward(const AttentionBatch& batch, const torch::Tensor& q,
                              const torch::Tensor& k, const torch::Tensor& v,
                              const torch::Tensor& out, const torch::Tensor& stats,
                              const torch::Tensor& gradient, std::int64_t window);

/// One part of a flat fp32 buffer; as kernels::FlatChunk.
struct Chunk {
  std::int64_t offset = 0, count = 0;
  double decay = 0;
};
/// Chunks on the device, cut to the kernels' size.
torch::Tensor chunk_table(const std::vector<Chunk>& chunks, torch::Device device);
/// fp32 scalar: the sum of squares over a chunk table.
torch::Tensor sum_of_squares(const torch::Tensor& x, const torch::Tensor& table);

/// y = the sum of `parts` in their order, added to y where `keep`. Contiguous, of y's type.
void sum_parts(const torch::Tensor& y, const std::vector<torch::Tensor>& parts, bool keep);

struct AdamWStep {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, clip_norm = 0;
  std::int64_t step = 1;
};
/// See kernels.h; `param` is bf16 or undefined.
void adamw(const AdamWStep& options, const torch::Tensor& table, const torch::Tensor& squares,
           const torch::Tensor& gradient, const torch::Tensor& master, const torch::Tensor& exp_avg,
           const torch::Tensor& exp_avg_sq, const torch::Tensor& param);

}  // namespace tessera::fused
