// CUDA kernels of the trainer: norms, rotary embedding, SwiGLU, scores of a vocabulary, AdamW,
// sums.
//
// Plain functions of device pointers, sizes and a stream (cudaStream_t); they enqueue and return.
// Row-major; `real` is the type of every void*, fp32 or bf16 (arithmetic is fp32); sizes are
// elements and need not be multiples of anything. Outputs may alias inputs only where said. No
// torch here; the reference of each is the LibTorch path in executor/model.
#pragma once

#include <cstdint>

namespace tessera::kernels {

enum class Real : std::uint8_t { fp32, bf16 };

/// sum = x + residual (both skipped where residual is nullptr), y = sum * r * weight with
/// r = 1 / sqrt(mean(sum^2) + epsilon), kept by row for the backward pass. sum may be x or
/// residual.
void rms_norm(Real real, const void* x, const void* residual, const void* weight, float epsilon,
              std::int64_t rows, std::int64_t columns, void* sum, void* y, float* r, void* stream);

/// Rows of `partial` that rms_norm_backward needs.
std::int64_t rms_norm_blocks(std::int64_t rows);

/// dx = the norm's gradient by x plus `passed` (the gradient that reached x beside it; nullptr =
/// none). weight_gradient (fp32, columns) is added to; partial: fp32 [blocks, columns] of scratch.
/// Gives the same bits in every run.
void rms_norm_backward(Real real, const void* gradient, const void* passed, const void* x,
                       const void* weight, const float* r, std::int64_t rows, std::int64_t columns,
                       void* dx, float* partial, float* weight_gradient, void* stream);

/// Rotates pairs (i, i + half) of every head by the token's angles cos, sin [tokens, half];
/// direction -1 rotates back. x has token_stride elements from token to token, heads are dense, y
/// is contiguous.
void rotate(Real real, const void* x, std::int64_t token_stride, const void* cos, const void* sin,
            float direction, std::int64_t tokens, std::int64_t heads, std::int64_t half, void* y,
            void* stream);

/// y = silu(gate) * up; gate and up have row_stride elements from row to row, y is contiguous.
void swiglu(Real real, const void* gate, const void* up, std::int64_t row_stride, std::int64_t rows,
            std::int64_t columns, void* y, void* stream);
/// Their gradients, with row stride out_stride.
void swiglu_backward(Real real, const void* gradient, const void* gate, const void* up,
                     std::int64_t row_stride, std::int64_t rows, std::int64_t columns, void* d_gate,
                     void* d_up, std::int64_t out_stride, void* stream);

/// Takes of each row of x / temperature: highest, sum of e^(x - highest), sum of e^(x - highest)(x
/// - highest), and the element at `target` (0 where target is not in [0, columns)). fp32 [rows]
/// each.
void vocabulary_sums(Real real, const void* logits, const std::int64_t* target, float temperature,
                     std::int64_t rows, std::int64_t columns, float* highest, float* sum,
                     float* weighted, float* picked, void* stream);

/// In place: the gradient by the logits of a score and an entropy whose gradients are g_score and
/// g_entropy (nullptr: none); normalizer = log of the sum of e^(x / temperature) over the whole
/// vocabulary.
void vocabulary_gradient(Real real, void* logits, const std::int64_t* target, float temperature,
                         const float* normalizer, const float* entropy, const float* g_score,
                         const float* g_entropy, std::int64_t rows, std::int64_t columns,
                         void* stream);

/// Elements [offset, offset + count) of a flat buffer that share one weight decay. In the buffer of
/// the weights, which need not be packed as the others are, they begin at offset + shift.
struct FlatChunk {
  std::int64_t offset = 0, count = 0;
  float decay = 0;
  std::int64_t shift = 0;
};
constexpr std::int64_t kLargestChunk = std::int64_t{1} << 16;

/// sum (fp32 scalar) = squares of the chunks' elements; partial: fp32 [chunks]. The same bits in
/// every run. `chunks` lies in device memory.
void sum_of_squares(const float* x, const FlatChunk* chunks, std::int64_t count, float* partial,
                    float* sum, void* stream);

/// y = the sum of `count` sources in their order, added to y where `keep`; [elements] each, added
/// up in fp32 and rounded once.
constexpr int kMostSources = 8;
void sum_sources(Real real, const void* const* sources, int count, std::int64_t elements, bool keep,
                 void* y, void* stream);

struct AdamW {
  float learning_rate = 0, beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
  float clip_norm = 0;                     // 0 = no clipping
};

/// One step over all chunks in one launch. The gradient is scaled by clip_norm / (norm + 1e-6)
/// where that is below one, norm = sqrt(*squares) on the device; where the norm is not finite
/// nothing changes. `param` (bf16, nullptr = none) receives the rounded master weights.
void adamw(const AdamW& options, const FlatChunk* chunks, std::int64_t count, const float* squares,
           const float* gradient, float* master, float* exp_avg, float* exp_avg_sq, void* param,
           void* stream);

}  // namespace tessera::kernels
