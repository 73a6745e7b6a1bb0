#include "cost_models/layer_operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/rank_model.h"

namespace tessera {

namespace {

/// What tensor parallel ranks need to add up `bytes`, which all of them have afterwards. By peers'
/// memory each lays its part down, reads it and the others', and writes the sum.
Seconds sum_seconds(const RankModel& rank, Traffic bytes, GroupShape group,
                    const ClusterSpec& cluster, const Calibration& calibration) {
  const PeerSums& peers = rank.traits.kernels.peer_sums;
  const bool by_peers = peers.start > 0 && group.ranks > 1 && group.nodes == 1 &&
                        group.ranks <= peers.most_ranks && bytes <= peers.most;
  if (!by_peers) {
    return collective_seconds(Collective::all_reduce, bytes, group, cluster, calibration);
  }
  return peers.start + 4 * bytes / BytesPerSecond{calibration.memory_bandwidth.value} +
         (group.ranks - 1) * bytes / copy_bandwidth(cluster, calibration);
}

}  // namespace

Seconds layer_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const Traffic bytes{tokens / rank.cp *
                      static_cast<double>(size_of(rank.dtype) * rank.model.hidden)};
  const auto collective = [&](Collective what) {
    return collective_seconds(what, bytes, group, cluster, calibration);
  };
  const Seconds both =
      rank.sequence_parallel
          ? collective(Collective::all_gather) + collective(Collective::reduce_scatter)
          : sum_seconds(rank, bytes, group, cluster, calibration);
  // Behind a router only the shared experts are cut by tp; without sequence parallelism the dealt
  // tokens of the routed ones are gathered.
  const double parts = (shape.mixes ? 1 : 0) + (shape.ffn > 0 ? 1 : 0);
  Seconds seconds = parts * both;
  if (rank.traits.kernels.overlapped_tensor_parallel && calibration.overlapped_dispatch &&
      rank.sequence_parallel && rank.tp > 1) {
    // In tp pieces beside the GEMM that needs or makes them: one piece sticks out (Wang et al.
    // 2023, ASPLOS; Transformer Engine's --tp-comm-overlap).
    seconds = std::max(seconds / rank.tp,
                       seconds - layer_matmul_seconds(rank, shape, tokens / rank.cp, calibration));
  }
  if (shape.sparse() && !rank.sequence_parallel) seconds += collective(Collective::all_gather);
  return seconds;
}

Seconds layer_cp_seconds(const RankModel& rank, const TokenBatch& batch, bool backward,
                         GroupShape group, const ClusterSpec& cluster,
                         const Calibration& calibration) {
  if (rank.cp <= 1) return {};
  const LayerShape shape = rank.layer();
  const double element = size_of(rank.dtype), own = batch.tokens / rank.cp;
  const double heads = as_double(shape.key_dim + shape.value_dim);
  const Traffic keys{own * element * as_double(rank.kv_heads()) * heads};
  if (rank.ulysses) {
    const Traffic queries{own * element * as_double(rank.query_heads()) * heads};
    const auto exchange = [&](Traffic bytes) {
      return collective_seconds(Collective::all_to_all, bytes, group, cluster, calibration);
    };
    return exchange(queries / 2) + 2 * exchange(keys / 2) + exchange(queries / 2);
  }
  const auto pass = [&](Traffic bytes) {
    return collective_seconds(Collective::send_receive, bytes,
                              {2, group.nodes > 1 ? 2 : 1, group.over_switch, group.over_socket},
                              cluster, calibration);
  };
  const Seconds attention = attention_seconds(rank, shape, batch, calibration);
  Seconds ring = (rank.cp - 1) * pass(keys);
  if (!backward) return std::max(Seconds{}, ring - attention);
  // Gradients of keys and values follow their blocks in fp32; the last step brings them home.
  const Seconds gradients = pass(keys / element * size_of(DType::fp32));
  ring += (rank.cp - 1) * gradients;
  return std::max(Seconds{}, ring - calibration.attention_backward.value * attention) + gradients;
}

ExpertCopies expert_copies(const MoeSpec& moe, GroupShape group) {
  const double k = as_double(moe.experts_per_token);
  // Nodes that one token may reach: groups lie on consecutive ranks, `group.nodes / groups` nodes
  // each or several to a node.
  double reachable = group.nodes;
  if (moe.groups > 1 && moe.groups_per_token < moe.groups) {
    const double nodes_per_group = std::max(1.0, group.nodes / as_double(moe.groups));
    reachable = std::min(reachable, as_double(moe.groups_per_token) * nodes_per_group);
  }
  const auto touched = [k](double places) { return places * (1 - std::pow(1 - 1 / places, k)); };
  return {touched(reachable), touched(reachable * group.ranks / group.nodes)};
}

namespace {

// One way of a hierarchical dispatch: `bytes` = one copy of all the rank's tokens.
Seconds hierarchical_seconds(const MoeSpec& moe, Traffic bytes, GroupShape group,
                             const ClusterSpec& cluster, const Calibration& calibration) {
  const ExpertCopies copies = expert_copies(moe, group);
  const double nodes = group.nodes;
  const Traffic network = bytes * copies.nodes * (nodes - 1) / nodes;
  const GroupShape inside{(group.ranks + group.nodes - 1) / group.nodes, 1, group.over_switch,
                          group.over_socket};
  return std::max(
             network / inter_node_bandwidth(Collective::all_to_all, group, cluster, calibration),
             collective_seconds(Collective::all_to_all, bytes * copies.ranks, inside, cluster,
                                calibration)) +
         Seconds{calibration.inter_latency_s.value} * (nodes - 1);
}

}  // namespace

Seconds layer_ep_seconds(const RankModel& rank, double tokens, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  if (!shape.sparse()) return {};
  const double copies = tokens / rank.cp / rank.tp * as_double(shape.experts_per_token) *
                        rank.traits.experts.imbalance;
  const bool gathered_first = rank.traits.experts.gathered_first;
  const Traffic own{copies * static_cast<double>(size_of(rank.dtype) * shape.expert_width)};
  const Traffic bytes = own * (gathered_first ? rank.etp : 1);
  Seconds seconds;
  if (rank.ep > 1) {
    const Traffic once = bytes / as_double(shape.experts_per_token);  // one copy of every token
    const bool hierarchical =
        rank.traits.experts.dispatch == ExpertDispatch::hierarchical && group.nodes > 1;
    const Traffic sent = rank.traits.experts.merged_dispatch
                             ? once * expert_copies(*rank.model.moe, group).ranks
                             : bytes;
    seconds +=
        2 * (hierarchical
                 ? hierarchical_seconds(*rank.model.moe, once, group, cluster, calibration)
                 : collective_seconds(Collective::all_to_all, sent, group, cluster, calibration));
  }
  if (rank.etp > 1 && gathered_first && !rank.sequence_parallel) {
    // All have the tokens. Sums are made over the whole of tp; layer_tp_seconds has their gather.
    const Traffic all{tokens / rank.cp *
                      static_cast<double>(size_of(rank.dtype) * shape.expert_width)};
    seconds += collective_seconds(Collective::reduce_scatter, all, group_shape(cluster, rank.tp, 1),
                                  cluster, calibration);
  } else if (rank.etp > 1) {
    const GroupShape inner = group_shape(cluster, rank.etp, 1);
    const Traffic gathered =
        gathered_first ? bytes / as_double(shape.experts_per_token) : own * rank.etp;
    seconds +=
        collective_seconds(Collective::all_gather, gathered, inner, cluster, calibration) +
        collective_seconds(Collective::reduce_scatter, gathered, inner, cluster, calibration);
  }
  return seconds;
}

Seconds embedding_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                             const ClusterSpec& cluster, const Calibration& calibration) {
  const Traffic bytes{tokens / rank.cp *
                      static_cast<double>(size_of(rank.dtype) * rank.model.hidden)};
  if (!rank.sequence_parallel) return sum_seconds(rank, bytes, group, cluster, calibration);
  return collective_seconds(Collective::reduce_scatter, bytes, group, cluster, calibration);
}

Seconds head_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                        const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.model.head == ModelHead::value) return {};
  const Traffic row{tokens / rank.cp * size_of(DType::fp32)};
  return collective_seconds(Collective::all_reduce, row, group, cluster, calibration) +
         collective_seconds(Collective::all_reduce, 3 * row, group, cluster, calibration);
}

Seconds head_backward_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                                 const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.model.head == ModelHead::value) return {};
  const Traffic bytes{tokens / rank.cp *
                      static_cast<double>(size_of(rank.dtype) * rank.model.hidden)};
  return collective_seconds(Collective::all_reduce, bytes, group, cluster, calibration);
}

Seconds sample_tp_seconds(const RankModel& rank, double sequences, GroupShape group,
                          const ClusterSpec& cluster, const Calibration& calibration) {
  if (!rank.traits.decode.cut_draws) {
    const Traffic bytes{sequences * static_cast<double>(rank.model.vocab * size_of(DType::fp32))};
    return collective_seconds(Collective::all_gather, bytes, group, cluster, calibration);
  }
  // Of each of 8 pieces of a rank's columns its largest logit, then two sums; last the draw
  // (executor/kernels/draw_kernels.h).
  const double pieces = 8.0 * group.ranks;
  const Traffic highest{sequences * pieces * 4}, sums{sequences * pieces * 16}, draw{sequences * 8};
  return collective_seconds(Collective::all_gather, highest, group, cluster, calibration) +
         collective_seconds(Collective::all_gather, sums, group, cluster, calibration) +
         collective_seconds(Collective::all_reduce, draw, group, cluster, calibration);
}

}  // namespace tessera
