#include "executor/model/ordered_products.h"

#include <ATen/cuda/CUDAContext.h>
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera::ordered_products {
namespace {

using torch::Tensor;

/// Rows of the numbers that algorithms are compared on, and of the reference's calls.
constexpr std::int64_t kSampleRows = 256, kReferenceRows = 16;
constexpr std::int64_t kMostRows = 8192;  // larger batches take its algorithm
constexpr std::int64_t kSampleElements = std::int64_t{1} << 27;
constexpr int kCandidates = 16;

/// A product but for its number of rows.
struct Shape {
  std::int64_t inputs = 0, outputs = 0, stride = 0;  // of the stored weight's rows
  bool by_output = false;                            // the weight is stored [outputs, inputs]
  bool wide = false;                                 // fp32 comes out
  auto operator<=>(const Shape&) const = default;
};

void check(cublasStatus_t status, const char* what) {
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, what, ": cuBLASLt status ",
              static_cast<int>(status));
}

/// cuBLASLt's description of a product of `rows` rows; in its order of columns y^T = w^T x^T.
class Description {
 public:
  Description(const Shape& shape, std::int64_t rows) {
    check(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
    const cublasOperation_t turned = shape.by_output ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                         sizeof turned),
          "transposition");
    const auto outputs = static_cast<std::uint64_t>(shape.outputs);
    const auto inputs = static_cast<std::uint64_t>(shape.inputs);
    check(cublasLtMatrixLayoutCreate(&weight, CUDA_R_16BF, shape.by_output ? inputs : outputs,
                                     shape.by_output ? outputs : inputs, shape.stride),
          "weight");
    check(cublasLtMatrixLayoutCreate(&x, CUDA_R_16BF, inputs, static_cast<std::uint64_t>(rows),
                                     shape.inputs),
          "rows");
    check(cublasLtMatrixLayoutCreate(&y, shape.wide ? CUDA_R_32F : CUDA_R_16BF, outputs,
                                     static_cast<std::uint64_t>(rows), shape.outputs),
          "result");
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  ~Description() {
    cublasLtMatrixLayoutDestroy(y);
    cublasLtMatrixLayoutDestroy(x);
    cublasLtMatrixLayoutDestroy(weight);
    cublasLtMatmulDescDestroy(product);
  }

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t weight = nullptr, x = nullptr, y = nullptr;
};

using Algorithm = cublasLtMatmulAlgo_t;

/// Algorithms without a split over the inputs and without workspace, the fastest by cuBLASLt's own
/// estimate first.
std::vector<Algorithm> candidates(const Shape& shape, std::int64_t rows) {
  const Description call(shape, rows);
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "preference");
  const std::uint64_t workspace = 0;
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE, alignment = 16;
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace),
        "workspace");
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &reductions, sizeof reductions),
        "reductions");
  for (const auto side :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, side, &alignment, sizeof alignment),
          "alignment");
  }
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      at::cuda::getCurrentCUDABlasLtHandle(), call.product, call.weight, call.x, call.y, call.y,
      preference, kCandidates, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  std::vector<Algorithm> algorithms;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    const auto& one = found[static_cast<std::size_t>(i)];
    std::uint32_t splits = 0;
    std::size_t written = 0;
    const bool asked =
        cublasLtMatmulAlgoConfigGetAttribute(&one.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                             sizeof splits, &written) == CUBLAS_STATUS_SUCCESS;
    if (one.state == CUBLAS_STATUS_SUCCESS && (!asked || splits <= 1)) {
      algorithms.push_back(one.algo);
    }
  }
  return algorithms;
}

/// y = x times the weight; false where the algorithm does not take that many rows.
bool multiply(const Shape& shape, const Algorithm& algorithm, const Tensor& x, const Tensor& weight,
              const Tensor& y) {
  const Description call(shape, x.size(0));
  const float one = 1, zero = 0;
  return cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), call.product, &one,
                        weight.data_ptr(), call.weight, x.data_ptr(), call.x, &zero, y.data_ptr(),
                        call.y, y.data_ptr(), call.y, &algorithm, nullptr, 0,
                        at::cuda::getCurrentCUDAStream(x.device().index())) ==
         CUBLAS_STATUS_SUCCESS;
}

Tensor room(const Shape& shape, std::int64_t rows, const Tensor& like) {
  return torch::empty({rows, shape.outputs},
                      like.options().dtype(shape.wide ? at::kFloat : at::kBFloat16));
}

/// What algorithms of one shape are held to: sample rows and their product with the weight of the
/// moment, by the reference, kReferenceRows rows at a time.
struct Sample {
  Tensor x, y;
};

Tensor sample_rows(const Shape& shape, const Tensor& weight) {
  const Tensor steps =
      torch::arange(kSampleRows * shape.inputs, weight.options().dtype(at::kDouble));
  return (steps * 0.7390851332151607)
      .sin()
      .mul_(2)
      .to(at::kBFloat16)
      .view({kSampleRows, shape.inputs});
}

/// None where the algorithm does not take so few rows.
std::optional<Sample> sample_of(const Shape& shape, const Algorithm& reference,
                                const Tensor& weight) {
  Sample sample{sample_rows(shape, weight), room(shape, kSampleRows, weight)};
  for (std::int64_t row = 0; row < kSampleRows; row += kReferenceRows) {
    if (!multiply(shape, reference, sample.x.narrow(0, row, kReferenceRows), weight,
                  sample.y.narrow(0, row, kReferenceRows))) {
      return std::nullopt;
    }
  }
  return sample;
}

/// The algorithm gives the sample's bits, wherever in a batch of `rows` rows a row lies.
bool agrees(const Shape& shape, const Algorithm& algorithm, std::int64_t rows, const Tensor& weight,
            const Sample& sample) {
  if (rows < kSampleRows) {
    for (std::int64_t first = 0; first + rows <= kSampleRows; first += rows) {
      const Tensor y = room(shape, rows, weight);
      if (!multiply(shape, algorithm, sample.x.narrow(0, first, rows), weight, y) ||
          !at::equal(y, sample.y.narrow(0, first, rows))) {
        return false;
      }
    }
    return true;
  }
  const std::int64_t most = std::max(kSampleRows, kSampleElements / shape.outputs);
  const std::int64_t copies = std::min(rows, most) / kSampleRows;
  const Tensor y = room(shape, copies * kSampleRows, weight);
  return multiply(shape, algorithm, sample.x.repeat({copies, 1}), weight, y) &&
         at::equal(y.view({copies, kSampleRows, -1}),
                   sample.y.unsqueeze(0).expand({copies, kSampleRows, shape.outputs}));
}

std::optional<Algorithm> reference_of(const Shape& shape, const Tensor& weight) {
  for (const Algorithm& one : candidates(shape, 4 * kReferenceRows)) {
    const std::optional<Sample> sample = sample_of(shape, one, weight);
    if (sample && agrees(shape, one, kSampleRows, weight, *sample)) return one;
  }
  return std::nullopt;
}

/// By shape: what its algorithms are held to, and those chosen by rows, powers of two.
struct Choices {
  Algorithm reference{};
  std::map<std::int64_t, Algorithm> by_rows;
};

const Algorithm& algorithm_for(Choices& choices, const Shape& shape, std::int64_t rows,
                               const Tensor& weight) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows)));
  const std::int64_t bucket = std::clamp(power, kReferenceRows, kMostRows);
  const auto found = choices.by_rows.find(bucket);
  if (found != choices.by_rows.end()) return found->second;
  const std::optional<Sample> sample = sample_of(shape, choices.reference, weight);
  std::vector<Algorithm> all = candidates(shape, bucket);
  all.push_back(choices.reference);
  for (const Algorithm& one : all) {
    if (sample && agrees(shape, one, bucket, weight, *sample)) {
      return choices.by_rows.emplace(bucket, one).first->second;
    }
  }
  throw Error(ExitCode::infeasible,
              "cuBLASLt has no algorithm for products of " + std::to_string(shape.inputs) + " x " +
                  std::to_string(shape.outputs) + " whose rows do not depend on their number");
}

/// One per device and calling thread; never destroyed, as threads may end after CUDA.
Choices& choices_of(const Shape& shape, const Tensor& weight) {
  thread_local auto* const all = new std::map<std::pair<int, Shape>, Choices>;
  const std::pair key(static_cast<int>(weight.device().index()), shape);
  const auto found = all->find(key);
  if (found != all->end()) return found->second;
  const std::optional<Algorithm> reference = reference_of(shape, weight);
  if (!reference) {
    throw Error(ExitCode::infeasible, "cuBLASLt has no product of " + std::to_string(shape.inputs) +
                                          " x " + std::to_string(shape.outputs) +
                                          " in bf16 that adds up its inputs in one go");
  }
  return all->emplace(key, Choices{*reference, {}}).first->second;
}

}  // namespace

Tensor on_gpu(const Tensor& x, const Tensor& weight, at::ScalarType type) {
  TESSERA_CHECK(x.scalar_type() == at::kBFloat16 && weight.scalar_type() == at::kBFloat16);
  const bool by_output = weight.stride(0) == 1 && weight.stride(1) == weight.size(0);
  TESSERA_CHECK(by_output || weight.stride(1) == 1);
  const Shape shape{.inputs = weight.size(0),
                    .outputs = weight.size(1),
                    .stride = by_output ? weight.size(0) : weight.stride(0),
                    .by_output = by_output,
                    .wide = type == at::kFloat};
  const Tensor in = x.contiguous();
  Tensor y = room(shape, in.size(0), in);
  if (in.size(0) == 0) return y;
  Choices& choices = choices_of(shape, weight);
  if (!multiply(shape, algorithm_for(choices, shape, in.size(0), weight), in, weight, y) &&
      !multiply(shape, choices.reference, in, weight, y)) {
    throw Error(ExitCode::internal, "cuBLASLt refused a product of " + std::to_string(in.size(0)) +
                                        " rows in the fixed order");
  }
  return y;
}

}  // namespace tessera::ordered_products
