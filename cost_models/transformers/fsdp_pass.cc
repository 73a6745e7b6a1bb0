#include "cost_models/transformers/fsdp_pass.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// A layer that is gathered, and the buffer in which the next one arrives: after the copy out of it
// the former layer is gone (foreach_all_gather, foreach_all_gather_copy_out).
constexpr double kGatheredLayers = 2;
// Part of a layer's gradients that exist where its backward pass has most memory, which is in the
// MLP: one of its three projections.
constexpr double kGradientsAtPeak = 1.0 / 3;

struct LayerBytes {
  double kept = 0, transients = 0;  // of the kind that needs most, for all tokens
};

LayerBytes largest_layer(const ModelSpec& model, const ModuleRun& run, const PassLoad& load) {
  LayerBytes most;
  for (std::size_t i = 0; i < load.layers.size(); ++i) {
    if (load.layers[i] == 0) continue;
    const auto kind = static_cast<LayerKind>(i);
    const SavedBytes saved = saved_by_layer(model, kind, run);
    const LayerBytes layer{load.tokens * as_double(saved.per_token) + as_double(saved.once),
                           load.tokens * as_double(backward_transients(model, kind, run))};
    if (layer.kept + layer.transients > most.kept + most.transients) most = layer;
  }
  return most;
}

double kept_by_layers(const ModelSpec& model, const ModuleRun& run, const PassLoad& load) {
  if (load.checkpointed) {
    const auto layers = std::accumulate(load.layers.begin(), load.layers.end(), std::int64_t{0});
    return as_double(layers) * load.tokens * as_double(saved_by_checkpoint(model, run).per_token);
  }
  double kept = 0;
  for (std::size_t i = 0; i < load.layers.size(); ++i) {
    if (load.layers[i] == 0) continue;
    const SavedBytes saved = saved_by_layer(model, static_cast<LayerKind>(i), run);
    kept += as_double(load.layers[i]) *
            (load.tokens * as_double(saved.per_token) + as_double(saved.once));
  }
  return kept;
}

// Whole weights and gradients of what is in no layer, by moment.
struct EndBytes {
  double loss = 0, head_reduced = 0, last_layer = 0, first_layer = 0, root = 0;
};

// A tied weight stays gathered, and its gradient whole, until the embedding has added its own: that
// moment has both and their sum.
EndBytes fsdp2_ends(const ModelSpec& model, const ModuleRun& run, const GatheredParts& parts) {
  const double element = size_of(run.type), head = element * as_double(parts.head);
  if (!parts.trained) {
    const double tied = model.tied_embeddings ? head : 0;
    return {head, 0, tied, tied, 0};
  }
  const double copied = as_double(parts.reduced_type) * as_double(parts.head);
  if (!model.tied_embeddings) return {2 * head, head + copied, copied, 0, 0};
  const double last = as_double(parts.reduced_type) * as_double(parts.layer);
  return {2 * head, head + copied, 2 * head, 2 * head, 4 * head + last};
}

// Parts of the root's gradient are joined to one tensor where the last of them is there; then the
// weights are cut again, and the gradient is copied to the type of its reduction, and once more
// where it is padded (_runtime_utils.py, _post_backward_hook, _reduce_grad).
EndBytes fsdp1_ends(const ModelSpec& model, const ModuleRun& run, const GatheredParts& parts) {
  const double element = size_of(run.type), reduced = as_double(parts.reduced_type);
  const double root = as_double(parts.root), weights = element * root;
  if (!parts.trained) return {weights, weights, weights, weights, weights};
  const double whole = weights + element * as_double(parts.head);
  const double joined = (model.tied_embeddings && parts.head > 0 ? 4 : 3) * weights;
  const double copied = weights + reduced * root * (parts.padded_root ? 2 : 1);
  return {whole, whole, whole, whole, std::max(joined, copied)};
}

}  // namespace

std::array<PassBytes, kMoments> training_moments(const ModelSpec& model, const ModuleRun& run,
                                                 const GatheredParts& parts, const PassLoad& load) {
  const double element = size_of(run.type), hidden = element * as_double(model.hidden);
  const double layer = element * as_double(parts.layer);
  const double reduced = parts.trained ? as_double(parts.reduced_type) : 0;
  const double gradients = parts.trained ? 1 : 0;
  const SavedBytes ends = saved_outside_layers(model, run);
  const double outside = load.tokens * as_double(ends.per_token) + as_double(ends.once);
  const double kept = kept_by_layers(model, run, load);
  const LayerBytes largest = largest_layer(model, run, load);
  const double again = load.checkpointed ? largest.kept : 0;  // one layer's tensors, made again

  // The layer that comes next is on its way while the head works.
  const EndBytes end =
      parts.root > 0 ? fsdp1_ends(model, run, parts) : fsdp2_ends(model, run, parts);
  const PassBytes loss{kept + outside, as_double(load.logits), layer + end.loss,
                       load.tokens * hidden};
  const PassBytes head_reduced{kept + outside, 0, layer + end.head_reduced, load.tokens * hidden};
  const double in_layer = layer * (kGatheredLayers + kGradientsAtPeak * gradients);
  const double norm = load.tokens * as_double(last_norm_transients(model)) + outside;
  const PassBytes last_layer{kept + again, 0, in_layer + end.last_layer,
                             std::max(largest.transients, load.checkpointed ? 0 : norm)};
  const PassBytes first_layer{largest.kept, 0,
                              in_layer + reduced * as_double(parts.layer) + end.first_layer,
                              largest.transients};
  const PassBytes root{.gathered = end.root};
  return {loss, head_reduced, last_layer, first_layer, root};
}

PassBytes scoring_moment(const ModelSpec& model, const ModuleRun& run, const GatheredParts& parts,
                         const PassLoad& load) {
  const double element = size_of(run.type);
  const double head = element * as_double(parts.head);
  const double root = parts.root > 0 ? element * as_double(parts.root)
                                     : (model.tied_embeddings ? head : 0);  // through all layers
  PassBytes in_layer{.gathered = kGatheredLayers * element * as_double(parts.layer) + root};
  for (std::size_t i = 0; i < load.layers.size(); ++i) {
    if (load.layers[i] == 0) continue;
    const auto kind = static_cast<LayerKind>(i);
    in_layer.activations = std::max(in_layer.activations,
                                    load.tokens * as_double(forward_transients(model, kind, run)));
  }
  const PassBytes at_head{.activations = load.tokens * 2 * element * as_double(model.hidden),
                          .logits = as_double(load.logits),
                          .gathered = std::max(root, head)};
  return in_layer.total() > at_head.total() ? in_layer : at_head;
}

}  // namespace tessera
