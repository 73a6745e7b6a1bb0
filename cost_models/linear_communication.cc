#include "cost_models/linear_communication.h"

#include <algorithm>

#include "cost_models/layer_operators.h"
#include "cost_models/rank_model.h"

namespace tessera {
namespace {

// Multiprocessors of an H100 that a user buffer's kernels occupy: 16 of 132, in pieces of a ring
// one (Transformer Engine pytorch/module/base.py, initialize_ub: num_sm).
constexpr double kBufferSlowdown = 132.0 / (132 - 16);
// Pieces of a product whose sums are reduced (the same, num_splits of "pipeline").
constexpr int kScatterSplits = 4;

// Products of one layer beside which its tokens travel.
class Products {
 public:
  Products(const RankModel& rank, double rows, const Calibration& calibration)
      : rank_(rank), rows_(rows), calibration_(calibration) {}

  Seconds forward(const MatmulShape& matrix, double share = 1) const {
    return seconds(share * rows_, matrix.n, matrix.k);
  }
  Seconds input_gradient(const MatmulShape& matrix, double share = 1) const {
    return seconds(share * rows_, matrix.k, matrix.n);
  }
  Seconds weight_gradient(const MatmulShape& matrix) const {
    return seconds(matrix.n, matrix.k, rows_);
  }

 private:
  Seconds seconds(double m, double n, double k) const {
    return calibration_.sustained.value * matmul_seconds(m, n, k, rank_.dtype, calibration_) /
           rank_.traits.kernels.product_speed;
  }

  const RankModel& rank_;
  double rows_;
  const Calibration& calibration_;
};

// A ring of tp pieces, each beside the product of the piece before; the own piece is there.
Seconds ring_loss(Seconds gather, int tp, Seconds whole, Seconds piece) {
  return std::max(Seconds{}, piece + (tp - 1) * std::max(piece, gather / (tp - 1)) - whole);
}

// Pieces of a product, each reduced beside the next one's; the last is reduced alone.
Seconds pipeline_loss(Seconds scatter, Seconds whole, Seconds piece) {
  const Seconds reduced = scatter / kScatterSplits;
  piece *= kBufferSlowdown;
  return std::max(Seconds{},
                  piece + (kScatterSplits - 1) * std::max(piece, reduced) + reduced - whole);
}

Seconds bulk_loss(Seconds collective, Seconds product) {
  return std::max(collective, product * kBufferSlowdown) - product;
}

}  // namespace

Traffic accumulated_bytes(const RankModel& rank) {
  const double own = size_of(rank.dtype), sum = 2.0 * size_of(DType::fp32);
  const bool fused = megatron_core(rank.traits) && rank.traits.kernels.flash_attention;
  return Traffic{fused ? sum - own : sum + own};
}

Seconds linear_tp_seconds(const RankModel& rank, double tokens, bool backward, GroupShape group,
                          const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.tp <= 1) return {};
  const LayerShape shape = rank.layer();
  const double rows = tokens / rank.cp;
  const Traffic bytes{rows * static_cast<double>(size_of(rank.dtype) * rank.model.hidden)};
  const auto collective = [&](Collective what) {
    return collective_seconds(what, bytes, group, cluster, calibration);
  };
  const Seconds gather = collective(Collective::all_gather);
  const Seconds scatter = collective(Collective::reduce_scatter);
  const Seconds reduce = collective(Collective::all_reduce);
  // A collective's kernel takes multiprocessors from what it runs beside.
  const auto beside = [&](Seconds moved, Seconds product) {
    return std::max(Seconds{}, moved - product) +
           (calibration.overlap_slowdown.value - 1) * std::min(moved, product);
  };
  const LayerMatmuls layer = layer_matmuls(rank, shape);
  const Products products(rank, rows, calibration);
  // Attention and the dense MLP (or the shared experts) have each a product that needs all tokens
  // and one that leaves partial sums of them.
  Seconds seconds;
  const std::size_t products_cut = (shape.mixes ? 2U : 0U) + (shape.ffn > 0 ? 2U : 0U);
  for (std::size_t first = 0; first < products_cut; first += 2) {
    const MatmulShape &in = layer.shapes[first], &out = layer.shapes[first + 1];
    if (backward && rank.adapter_rank > 0) {  // no weight's gradient to be hidden beside
      seconds += rank.sequence_parallel ? gather + scatter : reduce;
    } else if (!rank.sequence_parallel) {
      seconds += backward ? beside(reduce, products.weight_gradient(in)) : reduce;
    } else if (rank.traits.kernels.overlapped_tensor_parallel && backward) {
      seconds += ring_loss(gather, rank.tp, products.input_gradient(out),
                           products.input_gradient(out, 1.0 / rank.tp)) +
                 bulk_loss(gather, products.input_gradient(in)) +
                 bulk_loss(scatter, products.weight_gradient(in));
    } else if (rank.traits.kernels.overlapped_tensor_parallel) {
      seconds +=
          ring_loss(gather, rank.tp, products.forward(in), products.forward(in, 1.0 / rank.tp)) +
          pipeline_loss(scatter, products.forward(out),
                        products.forward(out, 1.0 / kScatterSplits));
    } else if (backward) {
      seconds += gather + beside(gather, products.input_gradient(in)) +
                 beside(scatter, products.weight_gradient(in));
    } else {
      seconds += gather + scatter;
    }
  }
  // Behind a router without sequence parallelism the dealt tokens are gathered.
  if (shape.sparse() && !rank.sequence_parallel) seconds += gather;
  return seconds;
}

}  // namespace tessera
