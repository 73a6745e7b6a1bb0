// Bytes that the modules of Hugging Face transformers keep for the backward pass.
//
// Pure functions of a ModelSpec, exact for what torch.autograd.graph.saved_tensors_hooks counts of
// transformers 5.17 under CUDA's autocast with flash attention over packed sequences, which is how
// verl's FSDP engine runs them (tests/cost_models/activation_oracle.py; every storage once, no
// parameters). Eager modules keep what fused kernels do not: a norm its input in fp32 and its
// normalised value, SwiGLU four tensors. No tensor parallelism; any thread.
#pragma once

#include <cstdint>

#include "cost_models/spec/dtype.h"
#include "cost_models/spec/layer_kind.h"

namespace tessera {

/// Bytes for each token of a rank, and bytes whatever the number of tokens is.
struct SavedBytes {
  std::int64_t per_token = 0, once = 0;

  SavedBytes& operator+=(const SavedBytes& other) {
    per_token += other.per_token;
    once += other.once;
    return *this;
  }
  bool operator==(const SavedBytes&) const = default;
};

/// How a model's layers run.
struct ModuleRun {
  DType type = DType::bf16;  // of parameters and of the residual stream
  /// Ranks that share a sequence by Ulysses' all-to-all (verl's _ulysses_flash_attention_forward):
  /// keys and values are repeated to at least that many heads, and what attention returns is
  /// copied on its way back. Tokens are a rank's own.
  int ulysses = 1;
  /// Of peft's adapters beside every linear weight, which are frozen then as all others: norms keep
  /// no normalised value for their weights' gradients, and each adapter a row of its rank. 0 =
  /// none.
  std::int64_t adapter_rank = 0;
};

/// What one decoder layer of the kind keeps; routed experts by grouped_mm_experts_forward, linear
/// attention by flash-linear-attention's and causal-conv1d's kernels.
SavedBytes saved_by_layer(const ModelSpec& model, LayerKind kind, const ModuleRun& run);

/// The same with gradient checkpointing: the layer's input.
SavedBytes saved_by_checkpoint(const ModelSpec& model, const ModuleRun& run);

/// What is kept outside of the layers: token ids, the rotary table, the last norm and its output,
/// which the head reads. Logits and what a loss makes of them are not counted here.
SavedBytes saved_outside_layers(const ModelSpec& model, const ModuleRun& run);

/// Most bytes of a token's that one layer makes and drops, beside what is kept, parameters and
/// their gradients: in a pass without gradients, and in the backward pass. Of the operators at
/// which these peak: the MLP's or the experts' elementwise products, and what Python still names
/// (the embedding, the residual stream, a norm's output). Within 3 % of the live storages of whole
/// passes for gated MLPs and experts (activation_oracle.py --peaks).
std::int64_t forward_transients(const ModelSpec& model, LayerKind kind, const ModuleRun& run);
std::int64_t backward_transients(const ModelSpec& model, LayerKind kind, const ModuleRun& run);

/// The same in the backward pass of the last norm, which is in fp32.
std::int64_t last_norm_transients(const ModelSpec& model);

}  // namespace tessera
