// The forward pass of the decoders (Llama, Mistral, Qwen2, Qwen3; Mixtral, Qwen2-MoE, Qwen3-MoE) on
// one pipeline stage.
//
// Batches are packed: the tokens of all sequences one after another, no padding. Activations are
// [tokens, hidden] in the weights' dtype. Differentiable where the weights require gradients.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/memory.h"
#include "executor/attention/context_attention.h"
#include "executor/model/experts.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {

/// With context parallelism `ids` and `positions` are the rows that this rank holds (and padding
/// after them), `lengths` are of the whole sequences.
struct PackedTokens {
  torch::Tensor ids, positions;       // int64 [tokens], on the weights' device
  std::vector<std::int64_t> lengths;  // of each sequence; on one rank they sum to `tokens`

  std::int64_t tokens() const { return ids.size(0); }
};

/// Packs sequences whose positions count from 0.
PackedTokens pack_tokens(std::span<const std::vector<std::int64_t>> sequences,
                         torch::Device device);

/// Who keeps a rank's parameters elsewhere between their uses (FSDP) or wants gradients as soon as
/// they are complete (ZeRO-2) is told when a layer begins and ends. Calls come in the order of
/// execution on the thread that computes (backward: autograd's), alike on ranks with equal layers.
class LayerAccess {
 public:
  virtual ~LayerAccess() = default;
  /// Before and after a layer's forward; [first, last) are the layers of the running chunk.
  virtual void before_forward(std::int64_t layer, LayerRange chunk) = 0;
  virtual void after_forward(std::int64_t layer, LayerRange chunk) = 0;
  /// Before a layer's backward, and after it: all its gradients are complete.
  virtual void before_backward(std::int64_t layer, LayerRange chunk) = 0;
  virtual void after_backward(std::int64_t layer, LayerRange chunk) = 0;
};

struct StageOptions {
  int chunk = 0;
  /// none keeps every activation; selective makes the SwiGLU product again in the backward pass;
  /// full keeps a layer's input only and runs its forward again.
  Recompute recompute = Recompute::none;
  LayerAccess* access = nullptr;
  /// Lets activations travel beside the layers' products; outlives the backward pass.
  TokenExchange* exchange = nullptr;
  ContextParallel context;  // alone: of `groups`
  RouterZLoss z_loss;       // of the chunk's routers
  RouterBalance balance;    // of the chunk's layers with experts
  RouterReplay replay;      // likewise, and of all its rows
  /// Fixed: without gradients; stage_forward throws as require_fixed_order.
  SumOrder order = SumOrder::fastest;
};

/// The layers of this rank's stage (chunk `chunk` of it): from token ids when the chunk is the
/// first of the model (`hidden` is ignored), else from the previous stage's output; with the final
/// norm when it is the last. Collective over the tensor-parallel and the expert-parallel group.
/// With sequence parallelism the number of tokens must be a multiple of tp, and hidden states
/// between stages are this rank's rows; gather_tokens makes the last chunk's whole.
torch::Tensor stage_forward(const Weights& weights, const ParallelGroups& groups,
                            const PackedTokens& tokens, const torch::Tensor& hidden = {},
                            const StageOptions& options = {});

TensorParallel tensor_parallel(const Weights& weights, const ParallelGroups& groups);

/// The layers of chunk `chunk` of this rank's stage, and how many of some layers have experts.
LayerRange chunk_layers(const Weights& weights, int chunk);
std::int64_t routed_layers(const Weights& weights, LayerRange layers);

bool is_first_chunk(const Weights& weights, int chunk);
bool is_last_chunk(const Weights& weights, int chunk);

}  // namespace tessera
