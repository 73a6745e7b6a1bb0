#include "cost_models/prediction/mtp.h"

#include "cost_models/collective.h"

namespace tessera {
namespace {

// Three norms and what lies side by side.
constexpr int kElementwise = 4;

double hidden_of(const RankModel& rank) { return static_cast<double>(rank.model.hidden); }

// Bytes of a token's hidden states, of the rank's own tokens.
Traffic stream_bytes(const RankModel& rank, double tokens) {
  return Traffic{tokens / rank.cp * hidden_of(rank) * size_of(rank.dtype)};
}

// The norms read and write a hidden state each, the projection's input is written once more.
Work elementwise(const RankModel& rank, double tokens, Seconds dispatch,
                 const Calibration& calibration) {
  const Traffic bytes = (3 * 2 + 4) * (stream_bytes(rank, tokens) / rank.stream_parts());
  return {stream_seconds(bytes, calibration), kElementwise * dispatch};
}

Seconds projection(const RankModel& rank, double tokens, const Calibration& calibration) {
  return calibration.sustained.value *
         matmul_seconds(tokens / rank.cp, static_cast<double>(rank.largest(rank.model.hidden)),
                        2 * hidden_of(rank), rank.dtype, calibration);
}

}  // namespace

Work mtp_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const Seconds dispatch{calibration.dispatch_s.value};
  return embedding_forward(rank, batch, calibration) + head_forward(rank, batch, calibration) +
         elementwise(rank, batch.tokens, dispatch, calibration) +
         Work{projection(rank, batch.tokens, calibration), dispatch};
}

Work mtp_backward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const Seconds dispatch{calibration.backward_dispatch_s.value};
  return head_backward(rank, batch, calibration) +
         2 * elementwise(rank, batch.tokens, dispatch, calibration) +
         2 * Work{projection(rank, batch.tokens, calibration), dispatch};
}

Seconds mtp_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                       const ClusterSpec& cluster, const Calibration& calibration) {
  const Traffic output = stream_bytes(rank, tokens);
  const Traffic gathered = rank.sequence_parallel ? 3 * output : output;
  return embedding_tp_seconds(rank, tokens, group, cluster, calibration) +
         head_tp_seconds(rank, tokens, group, cluster, calibration) +
         collective_seconds(Collective::all_gather, gathered, group, cluster, calibration);
}

Seconds mtp_backward_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                                const ClusterSpec& cluster, const Calibration& calibration) {
  const Traffic input = 2 * stream_bytes(rank, tokens);
  Seconds seconds = head_backward_tp_seconds(rank, tokens, group, cluster, calibration);
  if (!rank.sequence_parallel) {
    return seconds + collective_seconds(Collective::all_reduce, input, group, cluster, calibration);
  }
  return seconds + collective_seconds(Collective::all_gather, input, group, cluster, calibration) +
         collective_seconds(Collective::reduce_scatter, input, group, cluster, calibration);
}

}  // namespace tessera
