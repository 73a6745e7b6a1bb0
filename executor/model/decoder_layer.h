// The steps of a decoder layer that the packed forward pass and cached decoding share.
//
// All are collective over the tensor-parallel group. With sequence parallelism `hidden` and
// `normed` are this rank's rows, heads and `attended` have all tokens.
#pragma once

#include "executor/tensor/torch.h"

#include "executor/attention/attention.h"
#include "executor/model/experts.h"
#include "executor/model/layer_ops.h"
#include "executor/tensor/norm_ops.h"
#include "executor/tensor/rope.h"
#include "executor/weights/weights.h"

namespace tessera {

/// Embeddings of `ids`, [tokens, hidden]. Precondition: this rank is on the first stage.
torch::Tensor embed_tokens(const Weights& weights, const torch::Tensor& ids,
                           const TensorParallel& tp);

/// [tokens, heads, head_dim] of this rank; q and k normalised (where the model does) and rotated.
struct HeadStates {
  torch::Tensor q, k, v;
};
HeadStates project_heads(const Weights& weights, const LayerRows& rows, const torch::Tensor& normed,
                         const RopeTable& rope, const TensorParallel& tp);

/// Output projection, residual, and the feed-forward half of the layer.
torch::Tensor after_attention(const Weights& weights, const LayerRows& rows,
                              const torch::Tensor& hidden, const torch::Tensor& attended,
                              const TensorParallel& tp, const ExpertOptions& options = {});

/// That half alone, of a plain MLP or of experts: normed -> what is added to the residual.
torch::Tensor feed_forward(const Weights& weights, const LayerRows& rows,
                           const torch::Tensor& normed, const TensorParallel& tp,
                           const ExpertOptions& options = {});

torch::Tensor final_norm(const Weights& weights, const torch::Tensor& hidden);

}  // namespace tessera
