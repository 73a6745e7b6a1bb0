// Attention over packed sequences by cuDNN's fused kernels, forward and backward: causal, or of
// each sequence's queries to all of its keys, which may be others in number.
//
// bf16 tokens of all sequences one after another, [tokens, heads, head_dim] with a stride between
// tokens; grouped-query heads as they are. Graphs are built once per shape (0.2 to 0.9 s for the
// first, 45 ms later) and kept; callers round `sequences` and `longest` up so that shapes recur
// (surplus sequences have length 0). One object per thread and device. No torch here.
#pragma once

#include <cstdint>
#include <memory>

namespace tessera::kernels {

/// The shape that a graph is built for. Strides are elements from token to token.
struct AttentionShape {
  std::int64_t heads = 1, kv_heads = 1, head_dim = 128;
  std::int64_t sequences = 1, longest = 1, tokens = 1;  // bounds of the batch's queries
  std::int64_t longest_keys = 1, keys = 1;              // and of its keys; causal: the same
  bool causal = true;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  std::int64_t window = 0;  // 0 = full; else keys up to this many positions back, own included
  float scale = 1;
  bool deterministic = false;  // backward: the same bits every time, for some speed
  auto operator<=>(const AttentionShape&) const = default;
};

/// Device memory of one batch: int32 lengths of queries and of keys [sequences], and where each
/// sequence starts
/// ([sequences + 1], the last is the end) in elements of q, k, v, of the dense [tokens, heads,
/// head_dim] and [tokens, kv_heads, head_dim], and in [tokens, heads].
struct AttentionBatch {
  const void *lengths = nullptr, *key_lengths = nullptr, *q = nullptr, *k = nullptr, *v = nullptr;
  const void *dense = nullptr, *dense_kv = nullptr, *stats = nullptr;
};

class PackedAttention {
 public:
  PackedAttention();
  ~PackedAttention();

  /// cuDNN is there and runs such shapes. False on any other machine, nothing thrown.
  static bool available();

  std::int64_t workspace_bytes(const AttentionShape& shape, bool backward);

  /// out: dense; stats: fp32 [tokens, heads], natural log of each row's sum.
  void forward(const AttentionShape& shape, const AttentionBatch& batch, const void* q,
               const void* k, const void* v, void* out, void* stats, void* workspace, void* stream);

  /// d_q, d_k, d_v: dense. `gradient` and `out` are dense.
  void backward(const AttentionShape& shape, const AttentionBatch& batch, const void* q,
                const void* k, const void* v, const void* out, const void* stats,
                const void* gradient, void* d_q, void* d_k, void* d_v, void* workspace,
                void* stream);

 private:
  struct Graphs;
  std::unique_ptr<Graphs> graphs_;
};

}  // namespace tessera::kernels
