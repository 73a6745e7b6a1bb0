// The forward pass over new tokens of sequences whose earlier keys and values lie in pages:
// prompts, pieces of them and single tokens, in one batch (tensor parallel; one pipeline stage).
//
// On a GPU in bf16 attention is cuDNN's paged kernel and every operation may be captured in a
// graph; elsewhere keys and values are gathered from the pages and LibTorch attends to them. With
// SumOrder::fixed products and attention are those of ordered_ops.h, on any device. No gradients.
// Owned by one rank's rollout; calls are collective over the tensor-parallel group, and passes over
// the expert-parallel one.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <vector>

#include "executor/model/paged_kernels.h"
#include "executor/tensor/rope.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {

/// The tokens of `decode` come first, one per row, then those of `prefill`; either may have no
/// rows. Tensors lie on the weights' device.
struct PagedBatch {
  torch::Tensor ids, positions;  // int64 [tokens]
  torch::Tensor places;          // int64 [tokens]: page * page_tokens + token within the page
  fused::PagedRows decode, prefill;
  /// All ranks that share experts have as many tokens, and grouped products (ExpertOptions::even).
  bool even = false;
  torch::Tensor chosen;  // int64: tokens whose hidden states come out; undefined: all
  /// int16 [layers with experts, tokens, experts a token], zeros: gets the tokens' experts, alike
  /// on all tensor-parallel ranks. Undefined: nobody asks.
  torch::Tensor experts;
};

class PagedDecoder {
 public:
  /// Keeps references: `weights` and `groups` outlive it.
  PagedDecoder(const Weights& weights, const ParallelGroups& groups,
               SumOrder order = SumOrder::fastest);

  /// Keys and values of one page, of all layers on this rank.
  std::int64_t page_bytes(std::int64_t page_tokens) const;
  /// Takes memory (1-D, of the weights' type, page_bytes * pages long or more) for the cache, whose
  /// texts have at most `longest` tokens.
  void place(const torch::Tensor& memory, std::int64_t pages, std::int64_t page_tokens,
             std::int64_t longest);

  /// Stores the tokens' keys and values and returns the final hidden states, [chosen, hidden].
  torch::Tensor forward(const PagedBatch& batch) const;
  /// This rank's part in a pass of replicas that share experts with it: theirs, without tokens.
  void join() const;
  /// Copies whole pages, of all layers; int64 indices.
  void copy_pages(const torch::Tensor& from, const torch::Tensor& to) const;

 private:
  torch::Tensor store(const LayerRows& rows, const torch::Tensor& normed, const PagedBatch& batch,
                      const fused::PagedCache& cache, const TensorParallel& tp) const;
  torch::Tensor attend(const fused::PagedRows& rows, const torch::Tensor& q,
                       const fused::PagedCache& cache) const;
  bool windowed() const;

  const Weights& weights_;
  const ParallelGroups& groups_;
  SumOrder order_;
  HeadRange heads_;
  std::int64_t longest_ = 0;
  RopeTable rope_;  // by position
  std::vector<fused::PagedCache> layers_;
};

}  // namespace tessera
