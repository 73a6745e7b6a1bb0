// Tensor-parallel collectives of Megatron-LM's linear layers, which run beside products, and the
// sum of their gradients.
//
// Pure functions; of a layer and micro-batch, or of one weight.
#pragma once

#include "cost_models/compute.h"
#include "cost_models/engine_traits.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// Whether the engine's layers are Megatron-LM core's, as its experts are.
inline bool megatron_core(const EngineTraits& traits) { return traits.experts.eager_bias; }

/// Seconds by which a layer's collectives outlast the products beside them, and that the products
/// lose to them. Without user buffers (LayerKernels::overlapped_tensor_parallel) the backward pass
/// gathers an input beside its gradient's product and reduces that gradient beside the weight's
/// (Megatron-LM core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication).
Seconds linear_tp_seconds(const RankModel& rank, double tokens, bool backward, GroupShape group,
                          const ClusterSpec& cluster, const Calibration& calibration);

/// Bytes by which a weight's gradient joins its fp32 sum: a kernel reads it and reads and writes
/// the sum; or the product that makes it reads and writes the sum instead of writing 16 bit
/// (Megatron-LM 83b1e42f, wgrad_gemm_accum_fp32; since flash attention's time).
Traffic accumulated_bytes(const RankModel& rank);

}  // namespace tessera
