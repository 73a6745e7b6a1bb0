// The operators that one layer runs on a rank: private to cost_models/*.cc.
//
// Pure functions; of one layer, or of one of its tokens where they say so. compute.h sums them up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cost_models/compute.h"
#include "cost_models/spec/units.h"

namespace tessera {

inline double as_double(std::int64_t value) { return static_cast<double>(value); }

/// One of a layer's GEMMs on this rank: y[., n] = x[., k] w[n, k]^T, `groups` of them that share
/// the rows of a call (the experts that the rank holds), rows per token.
struct MatmulShape {
  double n = 0, k = 0;
  double rows = 1;       // per token of the rank
  double groups = 1;     // experts, each with an equal part of the rows
  bool backward = true;  // false: no gradient passes (an indexer's)
  int modules = 1;       // whose columns lie side by side
};

struct LayerMatmuls {
  std::array<MatmulShape, 16> shapes{};
  std::size_t count = 0;

  void add(double n, double k, double rows = 1, double groups = 1) {
    shapes[count++] = {n, k, rows, groups};
  }
  /// Of `modules` that read one input.
  void add_joined(double n, double k, int modules) {
    shapes[count++] = {.n = n, .k = k, .modules = modules};
  }
  const MatmulShape* begin() const { return shapes.data(); }
  const MatmulShape* end() const { return shapes.data() + count; }
};

LayerMatmuls layer_matmuls(const RankModel& rank, const LayerShape& shape);

double layer_weights(const LayerMatmuls& matmuls);

/// 1, or what fp32 costs beside 16 bit.
double compute_factor(DType dtype, const Calibration& calibration);

/// Pairs of a query and a key that causal attention looks at, per query: s / 2, or the window's,
/// the chunk's, or the chosen ones; of DeepSeek-V4's the window's and the entries.
double seen_keys(const LayerShape& shape, double length);

/// FLOPs of an indexer's scores for one query and key: its heads' products, and their weighted sum.
double index_flops_per_pair(const LayerShape& shape);

/// Keys, or entries that stand for several, that an indexer scores for a query at this context.
double index_keys(const LayerShape& shape, double context);

/// FLOPs of one token by which residual streams are mixed, at both places of a layer.
double stream_flops_per_token(const LayerShape& shape);

/// FLOPs of a gated delta net's chunks for one token, forward, all heads: scores of keys and of
/// queries within the chunk, the triangular system (half a product), reads and the update of the
/// state (Yang et al. 2024, arXiv:2412.06464, section 3.3; transformers 5.17's
/// torch_chunk_gated_delta_rule). Of lightning attention's blocks: scores and what they weight, and
/// one read and one update of the state (arXiv:2501.08313, algorithm 2).
double linear_flops_per_token(const LayerShape& shape);

/// The same of a state-space mixer's chunks: scores within a chunk for each group, what they weight
/// for each head, the chunk's states and what they give (Dao and Gu 2024, arXiv:2405.21060,
/// section 6).
double state_space_flops_per_token(const LayerShape& shape);

/// Causal attention, forward: sequences of the batch's effective length (attention's work is linear
/// in tokens x squared / tokens), the keys that windows leave, 1/cp of it all; an indexer besides,
/// whose scores are written and read once to choose the highest. FLOPs 2 (d_qk + d_v)
/// per pair, slower per FLOP in narrow heads. Without flash attention the scores are computed
/// whole, written, masked, normalised and read again: 5 passes over s x s elements (7 with
/// dropout).
Seconds attention_seconds(const RankModel& rank, const LayerShape& shape, const TokenBatch& batch,
                          const Calibration& calibration);

/// Latent attention decodes in the compressed space: every head reads the one latent of a token,
/// 2 n (2 r_kv + d_rope) FLOPs per cached token (absorbed form, arXiv:2405.04434, sec. 2.1.3). With
/// an indexer these are the chosen tokens; it reads its keys of all.
Seconds decode_attention_seconds(const RankModel& rank, const LayerShape& shape, double sequences,
                                 CacheReads reads, const Calibration& calibration);

/// All GEMMs of a layer with their adapters, forward.
Seconds layer_matmul_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                             const Calibration& calibration);

/// Seconds of one matrix's backward products: the input's gradient, and the weight's or, where it
/// is frozen, those of its adapter and the input's gradient through it.
Seconds matmul_backward_seconds(const RankModel& rank, const MatmulShape& matmul, double tokens,
                                const Calibration& calibration);

/// What stands beside the products of a layer's adapters: their outputs are added to the frozen
/// matrices' (two reads and a write of the columns); backward a scaled copy of that gradient is
/// made, and each adapter's gradient of the input is added. Joined ones (AdapterTraits) read the
/// frozen outputs once more, scale a narrow gradient and add one of the input. The operators count
/// the products, too.
struct AdapterSums {
  Traffic bytes;  // per token
  double kernels = 0, operators = 0;
};
AdapterSums adapter_sums(const RankModel& rank, const LayerMatmuls& matmuls, bool backward);

/// Per token, of products in 8 bit: each operand is read in 16 bit and written in 8 beside its
/// transpose, products of the activations forward, those of their gradients backward (Transformer
/// Engine's cast_transpose; a norm that casts saves about what the search for the largest costs).
Traffic cast_bytes(const RankModel& rank, const LayerShape& shape, bool backward);

/// Latent attention's projections to every head, forward, which selective recomputation repeats.
Seconds projected_again_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                                const Calibration& calibration);

}  // namespace tessera
