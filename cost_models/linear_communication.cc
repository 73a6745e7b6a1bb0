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

  double forward(const MatmulShape& matrix, double share = 1) const {
    return seconds(share * rows_, matrix.n, matrix.k);
  }
  double input_gradient(const MatmulShape& matrix, double share = 1) const {
    return seconds(share * rows_, matrix.k, matrix.n);
  }
  double weight_gradient(const MatmulShape& matrix) const {
    return seconds(matrix.n, matrix.k, rows_);
  }

 private:
  double seconds(double m, double n, double k) const {
    return calibration_.sustained.value * matmul_seconds(m, n, k, rank_.dtype, calibration_) /
           rank_.traits.kernels.product_speed;
  }

  const RankModel& rank_;
  double rows_;
  const Calibration& calibration_;
};

// A ring of tp pieces, each beside the product of the piece before; the own piece is there.
double ring_loss(double gather, int tp, double whole, double piece) {
  return std::max(0.0, piece + (tp - 1) * std::max(piece, gather / (tp - 1)) - whole);
}

// Pieces of a product, each reduced beside the next one's; the last is reduced alone.
double pipeline_loss(double scatter, double whole, double piece) {
  const double reduced = scatter / kScatterSplits;
  piece *= kBufferSlowdown;
  return std::max(0.0, piece + (kScatterSplits - 1) * std::max(piece, reduced) + reduced - whole);
}

double bulk_loss(double collective, double product) {
  return std::max(collective, product * kBufferSlowdown) - product;
}

}  // namespace

double accumulated_bytes(const RankModel& rank) {
  const double own = size_of(rank.dtype), sum = 2.0 * size_of(DType::fp32);
  return megatron_core(rank.traits) && rank.traits.kernels.flash_attention ? sum - own : sum + own;
}

double linear_tp_seconds(const RankModel& rank, double tokens, bool backward, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.tp <= 1) return 0;
  const LayerShape shape = rank.layer();
  const double rows = tokens / rank.cp;
  const double bytes = rows * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  const auto collective = [&](Collective what) {
    return collective_seconds(what, bytes, group, cluster, calibration);
  };
  const double gather = collective(Collective::all_gather);
  const double scatter = collective(Collective::reduce_scatter);
  const double reduce = collective(Collective::all_reduce);
  // A collective's kernel takes multiprocessors from what it runs beside.
  const auto beside = [&](double moved, double product) {
    return std::max(0.0, moved - product) +
           (calibration.overlap_slowdown.value - 1) * std::min(moved, product);
  };
  const LayerMatmuls layer = layer_matmuls(rank, shape);
  const Products products(rank, rows, calibration);
  // Attention and the dense MLP (or the shared experts) have each a product that needs all tokens
  // and one that leaves partial sums of them.
  double seconds = 0;
  for (std::size_t first = 0; first < (shape.ffn > 0 ? 4U : 2U); first += 2) {
    const MatmulShape &in = layer.shapes[first], &out = layer.shapes[first + 1];
    if (!rank.sequence_parallel) {
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
