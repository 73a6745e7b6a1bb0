// What a layer of multi-token prediction runs beside its transformer layer, on the last stage.
//
// Pure functions; any thread. Seconds of one rank. As Megatron-Core 0.18 has it
// (transformer/multi_token_prediction.py): the next token's embedding is looked up; it and the
// hidden state are normed, lie side by side and are projected to one hidden state, columns cut by
// tensor parallelism and gathered; behind the layer come a norm and the model's own head, with the
// loss of all tokens. DeepSeek-V3, arXiv:2412.19437, section 2.2.
#pragma once

#include "cost_models/calibration.h"
#include "cost_models/compute.h"
#include "cost_models/rank_model.h"

namespace tessera {

/// Of one such layer.
Work mtp_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration);
Work mtp_backward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration);

/// Its tensor-parallel communication: of the embedding and the head, and of the projection's output
/// (forward) and input (backward); under sequence parallelism the input is gathered, too.
Seconds mtp_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                       const ClusterSpec& cluster, const Calibration& calibration);
Seconds mtp_backward_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                                const ClusterSpec& cluster, const Calibration& calibration);

}  // namespace tessera
