#include "planner/sweep/refit.h"

#include <algorithm>

#include "cost_models/collective.h"
#include "cost_models/layout/parameter_table.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

// Per tensor of the checkpoint. Together: NeMo RL's transfer and update of Qwen3-30B-A3B (18,867
// tensors) takes 9.7 s, of Qwen3-235B-A22B (36,568) 18.4 s (NVIDIA-NeMo/RL#3294). Apart, in
// buckets: verl's of Qwen3-30B-A3B 4.4 s (docs/advance/fully_async.md).
constexpr Seconds kTensor{0.5e-3}, kBucketedTensor{0.23e-3};

// Optimizer states to memory that is not pinned, of which all ranks of a host allocate at once:
// what else those refits took, 7.5 s for 23 GB a GPU and 21.8 s for 44 GB.
constexpr BytesPerSecond kUnpinned{2.5e9};

constexpr Traffic kState{12};  // fp32 master weight and two moments

// Of a model with one layer, sparse or not, or with none.
double tensors_with(const ModelSpec& model, bool sparse, std::int64_t layers) {
  ModelSpec part = model;
  part.layers = layers;
  if (part.moe) part.moe->dense_layers.clear();
  if (part.moe && !sparse && layers > 0) part.moe->dense_layers.push_back(0);
  return static_cast<double>(parameter_table(part).rows.size());
}

double checkpoint_tensors(const ModelSpec& model) {
  const auto sparse = static_cast<double>(moe_layer_count(model));
  const double dense = static_cast<double>(model.layers) - sparse;
  const double outside = tensors_with(model, false, 0);
  double tensors = outside;
  if (dense > 0) tensors += dense * (tensors_with(model, false, 1) - outside);
  if (sparse > 0) tensors += sparse * (tensors_with(model, true, 1) - outside);
  return tensors;
}

}  // namespace

Seconds refit_seconds(const ModelSpec& model, const Candidate& actor, bool together,
                      const ClusterSpec& cluster, const Calibration& calibration) {
  const double tensors = checkpoint_tensors(model);
  if (!together) return kBucketedTensor * tensors;
  const auto parameters = static_cast<double>(parameter_count(model));
  const int experts = actor.ep * actor.etp * actor.pp;
  const int copy = actor.zero == 3 ? actor.gpus : std::max(actor.tp * actor.pp, experts);
  const Seconds gathered =
      copy == 1
          ? Seconds{}
          : collective_seconds(Collective::all_gather,
                               Traffic{parameters * static_cast<double>(size_of(model.dtype))},
                               group_shape(cluster, copy, 1), cluster, calibration);
  const int shards = actor.zero >= 1 ? actor.gpus : copy;
  return kTensor * tensors + gathered + kState * parameters / shards / kUnpinned;
}

}  // namespace tessera
