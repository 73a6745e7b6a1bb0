// Attention of some queries over some keys of packed sequences, with what merging needs: each row's
// log-sum-exp. Parts of one softmax over different keys add up exactly (Milakov and Gimelshein
// 2018; Liu et al. 2023, ring attention).
//
// On a GPU in bf16 cuDNN's packed kernels compute a part, elsewhere one padded block of sequences
// in fp32, which is also their reference. No autograd here. Heads: every KV head serves equally
// many consecutive query heads.
#pragma once

#include "executor/tensor/torch.h"

#include <vector>

#include "cost_models/spec/split.h"
#include "executor/tensor/fused.h"

namespace tessera {

/// One sequence's rows among the queries, and among the keys. Neither is empty.
struct PartRows {
  std::vector<Interval> queries, keys;
};

/// Which queries attend to which keys. Causal: both are the same tokens; else every query of a
/// sequence sees all of its keys.
struct AttentionPart {
  bool causal = false, packed = false;
  torch::Tensor q_rows, k_rows;  // rows that take part, int64; undefined: all of them, in order
  // Padded block: [sequences * longest] rows to gather, and where the part's rows lie in it.
  std::int64_t sequences = 0, q_longest = 0, k_longest = 0;
  torch::Tensor q_gather, k_gather, q_place, k_place;
  torch::Tensor hidden;         // bool [sequences, 1, 1, q_longest, k_longest]
  fused::AttentionBatch batch;  // packed

  bool empty() const { return sequences == 0; }
};

/// `q_count` and `k_count` are the rows of the tensors that the part will be taken from.
AttentionPart plan_part(const std::vector<PartRows>& sequences, bool causal, std::int64_t q_count,
                        std::int64_t k_count, bool packed, torch::Device device);

/// Results by query row: outputs [rows, heads, head_dim], log-sum-exp fp32 [rows, heads].
struct PartOutput {
  torch::Tensor out, lse;
};
/// q [q_count, heads, head_dim], k and v [k_count, kv heads, head_dim], heads dense.
PartOutput attend_part(const AttentionPart& part, const torch::Tensor& q, const torch::Tensor& k,
                       const torch::Tensor& v);

/// Gradients of the part's rows, given the merged output, its log-sum-exp and its gradient for all
/// query rows.
struct PartGradients {
  torch::Tensor q, k, v;  // [part's rows, ..]
};
PartGradients attend_part_backward(const AttentionPart& part, const torch::Tensor& q,
                                   const torch::Tensor& k, const torch::Tensor& v,
                                   const torch::Tensor& out, const torch::Tensor& lse,
                                   const torch::Tensor& gradient);

/// Rows `rows` of x, or x where undefined.
torch::Tensor rows_of(const torch::Tensor& x, const torch::Tensor& rows);

}  // namespace tessera
