#include "planner/pricing/role/micro_batch.h"

#include <algorithm>

#include "cost_models/linear_communication.h"
#include "planner/pricing/role/shards.h"

namespace tessera {
namespace {

// Megatron-LM's linear layers communicate beside products since flash attention's and sequence
// parallelism's time (16c90445, September 2021; 6658158b, March 2022). Latent attention's are not
// pairs of products.
Seconds tensor_seconds(const RankModel& rank, double tokens, bool backward, GroupShape group,
                       const ClusterSpec& cluster, const Calibration& calibration) {
  const bool since = rank.traits.kernels.flash_attention || rank.sequence_parallel;
  if (megatron_core(rank.traits) && since && calibration.overlapped_dispatch && !rank.model.mla) {
    return linear_tp_seconds(rank, tokens, backward, group, cluster, calibration);
  }
  return layer_tp_seconds(rank, tokens, group, cluster, calibration);
}

// Whether this candidate's expert parallelism runs beside the layers of another micro-batch.
bool experts_overlap(const EngineTraits& traits, const Candidate& candidate, GroupShape group) {
  if (candidate.recompute == Recompute::full) return false;
  return traits.experts.overlap == ExpertOverlap::always ||
         (traits.experts.overlap == ExpertOverlap::across_nodes && group.nodes > 1 &&
          candidate.pp > 1);
}

// A collective beside kernels: the part that sticks out, and what the kernels
// lose to it.
Seconds exposed(Seconds communication, Seconds compute, double slowdown) {
  return std::max(Seconds{}, communication - compute) +
         (slowdown - 1) * std::min(communication, compute);
}

// Of the model's ends: a rank of any kind of its layers.
const RankModel& end_rank(const RoleLayout& layout) {
  const RankModel* ends = &layout.ranks->front();
  for (std::size_t k = 0; k < layout.ranks->size(); ++k) {
    if (layout.model->layers[k] != 0) ends = &(*layout.ranks)[k];
  }
  return *ends;
}

}  // namespace

MicroBatchKernels micro_batch_kernels(const RoleLayout& layout, Recompute recompute,
                                      const TokenBatch& batch, const TokenBatch& scored,
                                      bool training, const MicroBatchKernels* plain) {
  MicroBatchKernels kernels;
  if (plain != nullptr) kernels = *plain;
  const Calibration& calibration = layout.assumed->calibration();
  for (std::size_t k = 0; k < layout.ranks->size(); ++k) {
    if (layout.model->layers[k] == 0) continue;
    const RankModel& rank = (*layout.ranks)[k];
    if (plain == nullptr) kernels.forward[k] = layer_forward(rank, batch, calibration);
    if (!training) continue;
    if (plain != nullptr && recompute == Recompute::full) {  // the forward pass again
      kernels.backward[k] += kernels.forward[k];
    } else {
      kernels.backward[k] = layer_backward(rank, batch, recompute, calibration);
    }
  }
  if (plain != nullptr) return kernels;
  const RankModel& ends = end_rank(layout);
  kernels.embedding = embedding_forward(ends, batch, calibration);
  kernels.head_forward = head_forward(ends, scored, calibration);
  if (training) kernels.head_backward = head_backward(ends, scored, calibration);
  return kernels;
}

MicroBatchCost price_micro_batch(const RoleLayout& layout, const Candidate& candidate,
                                 const TokenBatch& batch, const TokenBatch& scored, bool training) {
  return price_micro_batch(
      layout, candidate, micro_batch_kernels(layout, candidate.recompute, batch, scored, training),
      batch, scored, training);
}

MicroBatchCost price_micro_batch(const RoleLayout& layout, const Candidate& candidate,
                                 const MicroBatchKernels& kernels, const TokenBatch& batch,
                                 const TokenBatch& scored, bool training) {
  MicroBatchCost cost{kernels};
  const Assumptions& assumed = *layout.assumed;
  const ClusterSpec& cluster = assumed.cluster();
  const Calibration& calibration = assumed.calibration();
  const CandidateGroups& groups = layout.groups;
  const bool beside_layers = training && experts_overlap(assumed.traits(), candidate, groups.ep);
  for (std::size_t k = 0; k < layout.ranks->size(); ++k) {
    if (layout.model->layers[k] == 0) continue;
    const RankModel& rank = (*layout.ranks)[k];
    const Seconds dealt = layer_ep_seconds(rank, batch.tokens, groups.ep, cluster, calibration);
    const Seconds experts = beside_layers ? Seconds{} : dealt;
    const Seconds shared =
        tensor_seconds(rank, batch.tokens, false, groups.tp, cluster, calibration) + experts;
    cost.forward_comm[k] =
        shared + layer_cp_seconds(rank, batch, false, groups.cp, cluster, calibration);
    if (!training) continue;
    // Full recomputation runs the forward's collectives again.
    cost.backward_comm[k] =
        (candidate.recompute == Recompute::full ? shared : Seconds{}) + experts +
        tensor_seconds(rank, batch.tokens, true, groups.tp, cluster, calibration) +
        layer_cp_seconds(rank, batch, true, groups.cp, cluster, calibration);
    if (beside_layers) {  // one micro-batch's way forward beside another's way back
      const Work both = cost.forward[k] + cost.backward[k];
      cost.backward_comm[k] += exposed(2 * dealt, both.total(calibration), kDispatchSlowdown);
    }
  }
  set_shards(cost, layout, candidate, training);
  const RankModel& ends = end_rank(layout);
  cost.embedding_tp = embedding_tp_seconds(ends, batch.tokens, groups.tp, cluster, calibration);
  cost.head_tp = head_tp_seconds(ends, scored.tokens, groups.tp, cluster, calibration);
  if (training) {
    cost.head_backward_tp =
        head_backward_tp_seconds(ends, scored.tokens, groups.tp, cluster, calibration);
  }
  return cost;
}

void set_shards(MicroBatchCost& cost, const RoleLayout& layout, const Candidate& candidate,
                bool training) {
  const Assumptions& assumed = *layout.assumed;
  const Calibration& calibration = assumed.calibration();
  for (std::size_t k = 0; k < layout.model->layers.size(); ++k) {
    if (layout.model->layers[k] == 0) continue;
    const ShardSeconds moved = layer_shards(layout, candidate, static_cast<LayerKind>(k));
    cost.forward_shards[k] = beside_layer(
        assumed, moved, false, cost.forward[k].total(calibration) + cost.forward_comm[k]);
    if (!training) continue;
    cost.backward_shards[k] = beside_layer(
        assumed, moved, true, cost.backward[k].total(calibration) + cost.backward_comm[k]);
  }
}

}  // namespace tessera
