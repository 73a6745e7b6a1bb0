// Bytes that one rank needs beside its shards while FSDP runs a model of transformers.
//
// Pure functions. A pass is looked at where its live memory is largest; those moments exclude one
// another. Facts of PyTorch 2.11's torch/distributed/fsdp and of how verl 0.9.1 wraps a model. With
// FSDP2 every decoder layer, the embedding and the head are each a group of their own, and with
// tied embeddings the root holds that weight (utils/fsdp_utils.py, apply_fsdp2). With FSDP1 the
// root holds all that is in no layer, and stays gathered from its forward pass until its gradients
// are reduced, which are one tensor (get_fsdp_wrap_policy). Bytes; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "cost_models/spec/model_spec.h"
#include "cost_models/transformers/saved_tensors.h"

namespace tessera {

/// What FSDP gathers, in elements of whole tensors, and how it reduces their gradients.
struct GatheredParts {
  std::int64_t layer = 0;         // parameters of the largest decoder layer; 0 = not sharded
  std::int64_t head = 0;          // of the vocabulary projection; 0 = none, or not sharded
  std::int64_t root = 0;          // of FSDP1's root, the head among them; 0 = FSDP2
  bool padded_root = false;       // the ranks do not divide it
  std::int64_t reduced_type = 4;  // bytes of an element that is reduced (reduce_dtype)
  bool trained = true;            // false: frozen beside adapters, no gradients
};

/// A micro-batch of one rank.
struct PassLoad {
  double tokens = 0;          // of the rank's own
  LayerCounts layers{};       // by kind
  std::int64_t logits = 0;    // bytes of the logits and of what the loss makes of them
  bool checkpointed = false;  // gradient checkpointing of every layer
};

/// Bytes of one moment. `gathered`: whole parameters, and whole gradients until they are reduced.
struct PassBytes {
  double activations = 0, logits = 0, gathered = 0, workspace = 0;

  double total() const { return activations + logits + gathered + workspace; }
};

/// Moments of a forward and backward pass.
enum class Moment {
  loss,          // all is kept, the logits become their gradient, the head has its gradient
  head_reduced,  // the logits are gone, the head's gradient is copied for its reduction
  last_layer,    // its backward pass, which is the first
  first_layer,   // its backward pass, which is the last: nothing else is kept, gradients are whole
  root,          // the gradients of tied ends are added; FSDP1's root is reduced
};
inline constexpr int kMoments = 5;

/// In the order of Moment.
std::array<PassBytes, kMoments> training_moments(const ModelSpec& model, const ModuleRun& run,
                                                 const GatheredParts& parts, const PassLoad& load);

/// The largest moment of a pass without gradients: in a layer, or where the logits are.
PassBytes scoring_moment(const ModelSpec& model, const ModuleRun& run, const GatheredParts& parts,
                         const PassLoad& load);

}  // namespace tessera
