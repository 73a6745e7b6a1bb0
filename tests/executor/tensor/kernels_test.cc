// The layers' CUDA kernels equal their LibTorch references, forward and backward, odd sizes
// included.
#include <array>
#include <cmath>
#include <numeric>

#include "executor/attention/attention.h"
#include "executor/attention/partial_attention.h"
#include "executor/model/layer_ops.h"
#include "executor/model/scores.h"
#include "executor/tensor/norm_ops.h"
#include "executor/tensor/rope.h"
#include "tests/executor/tensor/kernels_fixture.h"

namespace tessera::testing {
namespace {

using Inputs = std::vector<Tensor>;
using Operator = std::function<Tensor(Inputs&)>;

/// Result and input gradients with the kernels (or on LibTorch's path), for inputs of one type.
std::vector<Tensor> evaluate(const Operator& op, const Inputs& inputs, at::ScalarType type,
                             bool fused) {
  fused::enable(fused);
  Inputs leaves;
  for (const Tensor& x : inputs) {
    leaves.push_back(x.is_floating_point() ? x.to(torch::kCUDA, type).requires_grad_()
                                           : x.to(torch::kCUDA));
  }
  const Tensor y = op(leaves);
  torch::manual_seed(9);
  const Tensor gradient = torch::randn(y.sizes()).to(y.device(), y.scalar_type());
  y.backward(gradient);
  std::vector<Tensor> all{y.detach()};
  for (const Tensor& x : leaves) {
    if (x.requires_grad()) all.push_back(x.grad());
  }
  fused::enable(true);
  return all;
}

/// fp32 kernels against the fp32 reference, bf16 kernels against the fp32 reference on the same
/// (rounded) values.
void expect_equal(const Operator& op, const Inputs& inputs, double bf16 = 2e-2) {
  const auto want = evaluate(op, inputs, torch::kFloat, false);
  const auto got = evaluate(op, inputs, torch::kFloat, true);
  Inputs rounded;
  for (const Tensor& x : inputs) {
    rounded.push_back(x.is_floating_point() ? x.to(torch::kBFloat16).to(torch::kFloat) : x);
  }
  const auto want_rounded = evaluate(op, rounded, torch::kFloat, false);
  const auto low = evaluate(op, rounded, torch::kBFloat16, true);
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(error_of(got[i], want[i]), 2e-5) << "fp32, output or gradient " << i;
    EXPECT_LE(error_of(low[i], want_rounded[i]), bf16) << "bf16, output or gradient " << i;
  }
}

TEST_F(Kernels, RmsNormWithAndWithoutResidual) {
  for (const auto& [rows, columns] : {std::pair{1, 1},
                                      {7, 18},
                                      {33, 129},
                                      {5, 40},
                                      {9001, 128},
                                      {70, 256},
                                      {700, 3584},
                                      {9, 8200}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Inputs inputs{torch::randn({rows, columns}), torch::randn({rows, columns}),
                        torch::randn({columns})};
    expect_equal([](Inputs& x) { return rms_norm(x[0], x[2], 1e-5) + 0 * x[1]; }, inputs);
    expect_equal(
        [](Inputs& x) {
          const ResidualNorm out = add_rms_norm(x[0], x[1], x[2], 1e-5);
          return torch::cat({out.sum * 0.7, out.normed}, 1);
        },
        inputs);
  }
}

TEST_F(Kernels, RotaryEmbeddingOfDenseAndStridedHeads) {
  for (const auto& [tokens, heads, dim] :
       {std::tuple{1, 1, 2}, {5, 3, 6}, {67, 7, 64}, {130, 28, 128}}) {
    const Tensor frequencies = rope_frequencies({}, dim).cuda();
    const Tensor positions = torch::arange(tokens).cuda();
    const auto width = std::int64_t{heads} * dim;
    expect_equal(
        [&, heads = heads, dim = dim](Inputs& x) {
          const RopeTable table = rope_table(frequencies, 1.1, positions, x[0].scalar_type());
          const Tensor strided = x[0].narrow(1, 0, width).view({-1, heads, dim});
          return apply_rope(strided, table) + apply_rope(strided.contiguous(), table);
        },
        {torch::randn({tokens, width + 8})});
  }
}

TEST_F(Kernels, SwiGluAloneAndBeforeItsProjection) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 9}, {301, 1032}}) {
    const Inputs inputs{torch::randn({rows, 24}), torch::randn({columns, 24}) / 5,
                        torch::randn({columns, 24}) / 5, torch::randn({columns, 24}) / 30,
                        torch::randn({24})};
    for (const bool recompute : {false, true}) {
      expect_equal(
          [recompute](Inputs& x) {
            const Projections both = column_parallel(x[0], {x[1], x[2], {}}, {}, nullptr);
            return gated_row_parallel(both.a, both.b, x[3], x[4], nullptr, recompute);
          },
          inputs);
    }
  }
}

TEST_F(Kernels, LogProbsAndEntropiesOfChunkedLogits) {
  for (const auto& [rows, hidden, vocab] :
       {std::tuple{1, 8, 3}, {37, 40, 515}, {65, 128, 152064}}) {
    const Tensor targets = torch::randint(vocab, {rows}, torch::kInt64);
    for (const double temperature : {1.0, 0.7}) {
      expect_equal(
          [&, vocab = vocab](Inputs& x) {
            const TokenScores scores = score_tokens(x[0], x[1], {0, vocab}, targets.cuda(), nullptr,
                                                    {temperature, true, 16});
            return torch::cat({scores.log_prob, scores.entropy});
          },
          {torch::randn({rows, hidden}), torch::randn({vocab, hidden}) / std::sqrt(hidden)}, 3e-2);
    }
  }
}

TEST_F(Kernels, GradientsGoStraightIntoFp32Buffers) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto options = torch::TensorOptions().device(torch::kCUDA).dtype(type);
    Tensor weight = torch::randn({9, 33}, options).requires_grad_(),
           gain = torch::randn({33}, options).requires_grad_();
    const Tensor x = torch::randn({21, 33}, options);
    const auto run = [&] {
      column_parallel(rms_norm(x, gain, 1e-5), {weight, weight.detach(), {}}, {}, nullptr)
          .a.square()
          .sum()
          .backward();
    };
    run();
    const Tensor want = gain.grad().to(torch::kFloat);
    if (type != torch::kFloat) gain.set_grad_dtype(torch::kFloat);
    gain.mutable_grad() = torch::ones({33}, options.dtype(torch::kFloat));
    run();
    EXPECT_LE(error_of(gain.grad() - 1, want), type == torch::kFloat ? 1e-5 : 1e-2);
  }
}

/// Attention of each sequence alone, in fp64.
Tensor attention_oracle(const Inputs& x, const std::vector<std::int64_t>& lengths) {
  const std::int64_t share = x[0].size(1) / x[1].size(1);
  std::vector<Tensor> parts;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    const auto heads = [&](const Tensor& t, std::int64_t repeat) {
      return t.narrow(0, first, length).repeat_interleave(repeat, 1).transpose(0, 1);
    };
    const Tensor score = at::matmul(heads(x[0], 1), heads(x[1], share).transpose(1, 2)) /
                         std::sqrt(static_cast<double>(x[0].size(2)));
    const Tensor later = torch::ones({length, length}, score.options()).triu(1).to(torch::kBool);
    const Tensor weight = score.masked_fill(later, -INFINITY).softmax(-1);
    parts.push_back(at::matmul(weight, heads(x[2], share)).transpose(0, 1));
    first += length;
  }
  return torch::cat(parts);
}

TEST_F(Kernels, PackedAttentionOfSequencesOfDifferentLengths) {
  if (!fused::attention_usable(torch::kCUDA, torch::kBFloat16, 128)) GTEST_SKIP() << "no cuDNN";
  for (const auto& lengths : std::vector<std::vector<std::int64_t>>{
           {1}, {300}, {5, 1, 64, 129, 7}, {33, 90, 200, 2, 2, 17, 70, 1, 1}}) {
    for (const auto& [heads, kv, dim] : {std::tuple{28, 4, 128}, {6, 2, 64}, {4, 4, 32}}) {
      const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
      Inputs exact, low;
      for (const int count : {heads, kv, kv}) {
        const Tensor x = torch::randn({tokens, count, dim}).to(torch::kBFloat16);
        exact.push_back(x.to(torch::kCUDA, torch::kFloat64).requires_grad_());
        low.push_back(x.to(torch::kCUDA).requires_grad_());
      }
      const Tensor gradient = torch::randn({tokens, heads, dim}).to(torch::kBFloat16).cuda();
      attention_oracle(exact, lengths).backward(gradient.to(torch::kFloat64));
      const auto batch = fused::attention_batch(lengths, torch::kCUDA);
      const auto out = fused::attend(batch, low[0], low[1], low[2], 0);
      const auto d = fused::attend_backward(batch, low[0].detach(), low[1].detach(),
                                            low[2].detach(), out.out, out.stats, gradient, 0);
      const torch::NoGradGuard no_grad;
      EXPECT_LE(error_of(out.out, attention_oracle(exact, lengths)), 1e-2);
      if (tokens > 1) {  // the gradient by a single query and key is zero
        EXPECT_LE(error_of(d.q, exact[0].grad()), 2e-2);
        EXPECT_LE(error_of(d.k, exact[1].grad()), 2e-2);
      }
      EXPECT_LE(error_of(d.v, exact[2].grad()), 2e-2);
    }
  }
}

/// Attention on a ring's rank: causal over its own tokens, all keys of an earlier rank, late
/// queries alone; sequences with one token, and none on a side, among them.
TEST_F(Kernels, PartsOfAttentionAndTheirLogSumsEqualTheReference) {
  const auto all = [](std::vector<std::array<std::int64_t, 2>> counts) {
    std::vector<PartRows> parts;
    std::int64_t q = 0, k = 0;
    for (const auto& [queries, keys] : counts) {
      parts.push_back({{{q, q + queries}}, {{k, k + keys}}});
      q += queries;
      k += keys;
    }
    return parts;
  };
  const auto device = torch::Device(torch::kCUDA);
  for (const int dim : {64, 128}) {
    for (const bool causal : {true, false}) {
      auto rows = causal ? all({{130, 130}, {1, 1}, {517, 517}, {64, 64}})
                         : all({{130, 70}, {1, 300}, {517, 1}, {64, 129}});
      const std::int64_t q_count = 900, k_count = 900;  // more than take part
      const auto draw = [&](std::int64_t count, std::int64_t heads) {
        return torch::randn({count, heads, dim}, device).to(torch::kBFloat16);
      };
      const Tensor q = draw(q_count, 14), k = draw(k_count, 2), v = draw(k_count, 2);
      const auto evaluated = [&](bool packed) {
        const AttentionPart part = plan_part(rows, causal, q_count, k_count, packed, device);
        const PartOutput got = attend_part(part, q, k, v);
        Tensor out = torch::zeros_like(q), lse = torch::zeros({q_count, 14}, device);
        const std::int64_t used = got.out.size(0);
        out.narrow(0, 0, used).copy_(got.out);
        lse.narrow(0, 0, used).copy_(got.lse);
        const PartGradients d = attend_part_backward(part, q, k, v, out, lse, v.repeat({1, 7, 1}));
        return std::vector<Tensor>{got.out, got.lse, d.q, d.k, d.v};
      };
      const auto got = evaluated(true), want = evaluated(false);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_LT(error_of(got[i], want[i]), i == 1 ? 1e-4 : 1e-2) << "result " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
