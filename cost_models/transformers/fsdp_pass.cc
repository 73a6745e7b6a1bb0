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

}  // namespace

std::array<PassBytes, kMoments> training_moments(const ModelSpec& model, const ModuleRun& run,
                                                 const GatheredParts& parts, const PassLoad& load) {
  const double element = size_of(run.type), hidden = element * as_double(model.hidden);
  const double layer = element * as_double(parts.layer), head = element * as_double(parts.head);
  const double reduced = parts.trained ? as_double(parts.reduced_type) : 0;
  const double gradients = parts.trained ? 1 : 0;
  const SavedBytes ends = saved_outside_layers(model, run);
  const double outside = load.tokens * as_double(ends.per_token) + as_double(ends.once);
  const double kept = kept_by_layers(model, run, load);
  const LayerBytes largest = largest_layer(model, run, load);
  const double again = load.checkpointed ? largest.kept : 0;  // one layer's tensors, made again

  // The layer that comes next is on its way while the head works.
  const PassBytes loss{kept + outside, as_double(load.logits), layer + head * (1 + gradients),
                       load.tokens * hidden};
  const PassBytes head_reduced{kept + outside, 0,
                               layer + gradients * head + reduced * as_double(parts.head),
                               load.tokens * hidden};
  // What was reduced last is released when the next group's gradients are. A tied weight stays
  // gathered, and its gradient whole, until the embedding has added its own.
  const double of_head =
      model.tied_embeddings ? head * (1 + gradients) : reduced * as_double(parts.head);
  const double in_layer = layer * (kGatheredLayers + kGradientsAtPeak * gradients);
  const double norm = load.tokens * as_double(last_norm_transients(model)) + outside;
  const PassBytes last_layer{kept + again, 0, in_layer + of_head,
                             std::max(largest.transients, load.checkpointed ? 0 : norm)};
  const PassBytes first_layer{
      largest.kept, 0,
      in_layer + std::max(reduced * as_double(parts.layer), model.tied_embeddings ? of_head : 0),
      largest.transients};
  return {loss, head_reduced, last_layer, first_layer};
}

PassBytes scoring_moment(const ModelSpec& model, const ModuleRun& run, const GatheredParts& parts,
                         const PassLoad& load) {
  const double element = size_of(run.type);
  PassBytes in_layer{.gathered = kGatheredLayers * element * as_double(parts.layer)};
  for (std::size_t i = 0; i < load.layers.size(); ++i) {
    if (load.layers[i] == 0) continue;
    const auto kind = static_cast<LayerKind>(i);
    in_layer.activations = std::max(in_layer.activations,
                                    load.tokens * as_double(forward_transients(model, kind, run)));
  }
  const PassBytes at_head{.activations = load.tokens * 2 * element * as_double(model.hidden),
                          .logits = as_double(load.logits),
                          .gathered = element * as_double(parts.head)};
  return in_layer.total() > at_head.total() ? in_layer : at_head;
}

}  // namespace tessera
