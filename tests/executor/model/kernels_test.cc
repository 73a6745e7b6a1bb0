// The CUDA kernels equal their LibTorch references, forward and backward, odd sizes included.
#include <gmock/gmock.h>

#include <c10/cuda/CUDAStream.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <array>
#include <cmath>
#include <numeric>

#include "executor/kernels/range_sums.h"
#include "executor/model/attention.h"
#include "executor/model/fused.h"
#include "executor/model/layer_ops.h"
#include "executor/model/norm_ops.h"
#include "executor/model/partial_attention.h"
#include "executor/model/placed_chunks.h"
#include "executor/model/range_copies.h"
#include "executor/model/rope.h"
#include "executor/model/scores.h"
#include "executor/model/torch_memory_ops.h"

namespace tessera::testing {
namespace {

using torch::Tensor;
using Inputs = std::vector<Tensor>;
using Operator = std::function<Tensor(Inputs&)>;

double error_of(const Tensor& got, const Tensor& want) {
  const Tensor a = got.to(torch::kCPU, torch::kFloat64), b = want.to(torch::kCPU, torch::kFloat64);
  if (!a.isfinite().all().item<bool>()) return INFINITY;
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-12);
}

class Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU on this machine";
    if (!fused::usable(torch::zeros({1}, torch::kCUDA))) GTEST_SKIP() << "built without kernels";
    torch::manual_seed(3);
  }
  void TearDown() override { fused::enable(true); }
};

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
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {7, 18}, {33, 129}, {5, 40}, {700, 3584}, {9, 8200}}) {
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

/// Of a ring's rank: causal over its own tokens, all keys of an earlier rank, and late queries
/// alone; sequences with one token, and none on a side, among them.
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

TEST_F(Kernels, AdamWAndItsNormEqualTorchs) {
  const std::int64_t count = 200'003;
  const auto fp32 = torch::TensorOptions().device(torch::kCUDA).dtype(torch::kFloat);
  Tensor master = torch::randn({count}, fp32), gradient = torch::randn({count}, fp32);
  Tensor exp_avg = torch::zeros({count}, fp32), exp_avg_sq = torch::zeros({count}, fp32);
  Tensor param = torch::zeros({count}, fp32.dtype(torch::kBFloat16));
  const Tensor before = master.clone();
  // Parts of odd sizes at odd offsets; elements 11..16 belong to nobody.
  const std::vector<fused::Chunk> chunks{{0, 11, 0.1}, {17, 100'000, 0.0}, {100'017, 99'986, 0.1}};
  const Tensor table = fused::chunk_table(chunks, torch::kCUDA);
  const Tensor squares = fused::sum_of_squares(gradient, table);
  const Tensor gap = gradient.slice(0, 11, 17);
  EXPECT_NEAR(squares.item<double>(), (gradient.square().sum() - gap.square().sum()).item<double>(),
              1.0);
  EXPECT_TRUE(torch::equal(squares, fused::sum_of_squares(gradient, table)));

  std::vector<Tensor> decayed, plain;
  for (const auto& c : chunks) {
    (c.decay > 0 ? decayed : plain)
        .push_back(before.narrow(0, c.offset, c.count).clone().requires_grad_());
  }
  using Options = torch::optim::AdamWOptions;
  const auto options = [](double decay) {
    return std::make_unique<Options>(Options(1e-2).eps(1e-6).weight_decay(decay));
  };
  torch::optim::AdamW adamw({torch::optim::OptimizerParamGroup(decayed, options(0.1)),
                             torch::optim::OptimizerParamGroup(plain, options(0.0))});
  const double scale = std::min(1.0, 2.0 / (std::sqrt(squares.item<double>()) + 1e-6));
  for (int step = 1; step <= 3; ++step) {
    fused::adamw({.learning_rate = 1e-2, .eps = 1e-6, .clip_norm = 2.0, .step = step}, table,
                 squares, gradient, master, exp_avg, exp_avg_sq, param);
    std::size_t d = 0, p = 0;
    for (const auto& c : chunks) {
      (c.decay > 0 ? decayed[d++] : plain[p++]).mutable_grad() =
          gradient.narrow(0, c.offset, c.count) * scale;
    }
    adamw.step();
  }
  std::size_t d = 0, p = 0;
  for (const auto& c : chunks) {
    const Tensor want = (c.decay > 0 ? decayed[d++] : plain[p++]).detach();
    EXPECT_LE(error_of(master.narrow(0, c.offset, c.count), want), 1e-6);
    EXPECT_TRUE(torch::equal(param.narrow(0, c.offset, c.count),
                             master.narrow(0, c.offset, c.count).to(torch::kBFloat16)));
  }
  EXPECT_TRUE(torch::equal(master.slice(0, 11, 17), before.slice(0, 11, 17)));
  const Tensor infinite = torch::full({}, INFINITY, fp32), kept = master.clone();
  fused::adamw({.learning_rate = 1, .step = 4}, table, infinite, gradient, master, exp_avg,
               exp_avg_sq, param);
  EXPECT_TRUE(torch::equal(master, kept));
}

/// Weights that lie apart from the flat buffers' order, aligned as those are or not.
TEST_F(Kernels, AdamWWritesWeightsWhereTheirChunksSay) {
  const auto fp32 = torch::TensorOptions().device(torch::kCUDA);
  const std::int64_t count = 200'003;
  const Tensor gradient = torch::randn({count}, fp32), start = torch::randn({count}, fp32);
  const std::vector<fused::Chunk> packed{
      {0, 11, 0.1}, {17, 100'000, 0.0}, {100'017, 50'001, 0.1}, {150'020, 49'983, 0.1}};
  const std::vector<fused::PlacedChunk> moved{
      {packed[0], 200'100},      // behind all others
      {packed[1], 49'988},       // vectors stay vectors
      {packed[2], 49'994},       // here they do not
      {packed[3], 1 - 150'020},  // nor in front of all
  };
  const auto updated = [&](const std::vector<fused::PlacedChunk>& chunks, Tensor& master,
                           std::int64_t size) {
    const Tensor table = fused::placed_chunk_table(chunks, torch::kCUDA);
    const Tensor squares = fused::sum_of_squares(gradient, table);
    master = start.clone();
    Tensor mean = torch::zeros({count}, fp32), square = torch::zeros({count}, fp32);
    Tensor param = torch::full({size}, 7, fp32.dtype(torch::kBFloat16));
    for (int step = 1; step <= 2; ++step)
      fused::adamw({.learning_rate = 1e-2, .clip_norm = 2.0, .step = step}, table, squares,
                   gradient, master, mean, square, param);
    return param;
  };
  Tensor want_master, got_master;
  const Tensor want = updated({packed.begin(), packed.end()}, want_master, count);
  const std::int64_t size = 200'200;
  const Tensor got = updated(moved, got_master, size);
  EXPECT_TRUE(torch::equal(got_master, want_master));
  Tensor rest = torch::ones({size}, fp32.dtype(torch::kBool));
  for (const auto& [c, shift] : moved) {
    EXPECT_TRUE(
        torch::equal(got.narrow(0, c.offset + shift, c.count), want.narrow(0, c.offset, c.count)))
        << shift;
    rest.narrow(0, c.offset + shift, c.count).fill_(false);
  }
  EXPECT_TRUE((got == 7).logical_or(~rest).all().item<bool>());
  EXPECT_EQ(rest.sum().item<std::int64_t>(), size - 199'995);
}

TEST_F(Kernels, SumsOfSourcesEqualTorchsInTheSameOrder) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto options = torch::TensorOptions().device(torch::kCUDA).dtype(type);
    const Tensor pool = torch::randn({12 * 100'003}, options);
    for (const std::int64_t skip : {0, 1}) {              // whole words, and not
      for (const std::int64_t sources : {1, 3, 8, 11}) {  // 11: in two launches
        const std::int64_t count = 100'000 - skip;
        std::vector<Tensor> parts;
        Tensor want = torch::zeros({count}, options.dtype(torch::kFloat));
        for (std::int64_t i = 0; i < sources; ++i) {
          parts.push_back(pool.narrow(0, i * 100'000 + skip, count));
          want.add_(parts.back());
        }
        Tensor got = torch::full({count}, NAN, options);
        fused::sum_parts(got, parts, false);
        if (sources <= 8) {
          EXPECT_TRUE(torch::equal(got, want.to(type))) << sources;
        } else {
          EXPECT_LE(error_of(got, want), type == torch::kFloat ? 1e-6 : 1e-2);
        }
        fused::sum_parts(got, parts, true);
        EXPECT_LE(error_of(got, 2 * want), type == torch::kFloat ? 1e-6 : 1e-2);
      }
    }
  }
}

/// Aligned and odd places, whole chunks, tails and nothing at all.
TEST_F(Kernels, SumsOfRangesAreTheReferencesBitForBit) {
  const std::int64_t size = std::int64_t{3} << 20;
  const Tensor host = torch::randint(0, 256, {size}, torch::kInt).to(torch::kUInt8);
  const Tensor device = host.to(torch::kCUDA);
  const auto* bytes = host.const_data_ptr<std::uint8_t>();
  const auto* there = device.const_data_ptr<std::uint8_t>();
  const std::vector<std::pair<std::int64_t, std::int64_t>> places{
      {0, size},    {16, 1 << 17},   {0, (1 << 17) + 24}, {2, 100'002},
      {5, 131'077}, {32, 7},         {1024, 8},           {64, 0},
      {6, 3},       {4096, 262'144}, {4096, 262'144}};
  std::vector<MemoryRange> ranges;
  for (const auto& [offset, count] : places) {
    ranges.push_back({there + offset, static_cast<std::size_t>(count)});
  }
  const auto ops = make_torch_memory_ops(0);
  for (int turn = 0; turn < 2; ++turn) {  // the second time from a kept table
    const std::vector<std::uint64_t> sums = ops->checksums(ranges);
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_EQ(sums[i], kernels::range_sum(bytes + places[i].first,
                                            static_cast<std::size_t>(places[i].second)))
          << "range " << i;
    }
  }
  device[777'777].add_(1);
  const std::vector<std::uint64_t> changed = ops->checksums(ranges);
  EXPECT_NE(changed[0], kernels::range_sum(bytes, static_cast<std::size_t>(size)));
  EXPECT_EQ(changed[9], kernels::range_sum(bytes + 4096, 262'144));
}

TEST_F(Kernels, CopiesOfRangesAreTheBytesAndNothingElse) {
  const std::int64_t size = std::int64_t{1} << 20;
  const Tensor from = torch::randint(1, 256, {size}, torch::kInt).to(torch::kUInt8);
  const Tensor there = from.to(torch::kCUDA);
  // From, to, bytes: aligned alike and not, odd lengths, several chunks.
  const std::vector<std::array<std::int64_t, 3>> copies{
      {0, 16, 300'000},      {300'002, 300'034, 131'073}, {431'077, 440'000, 65'536},
      {600'001, 600'016, 5}, {700'000, 700'008, 1},       {800'000, 800'000, 0}};
  const CopyWithin copy = make_range_copies(0);
  for (int turn = 0; turn < 2; ++turn) {  // the second time from a kept list
    const Tensor to = torch::zeros({size}, there.options());
    Tensor expected = torch::zeros({size}, torch::kUInt8);
    CopyBatch batch;
    for (const auto& [source, target, bytes] : copies) {
      expected.narrow(0, target, bytes).copy_(from.narrow(0, source, bytes));
      batch.add(to.mutable_data_ptr<std::uint8_t>() + target,
                there.const_data_ptr<std::uint8_t>() + source, static_cast<std::size_t>(bytes));
    }
    copy(batch, c10::cuda::getCurrentCUDAStream(0).stream());
    EXPECT_TRUE(torch::equal(to.cpu(), expected));
  }
}

TEST_F(Kernels, CastsForTheWireRoundAsTorchAndCountTheirError) {
  for (const auto& [type, half] :
       {std::pair(DType::bf16, torch::kBFloat16), std::pair(DType::fp16, torch::kHalf)}) {
    const auto ops = make_torch_memory_ops(0);
    double error = 0, norm = 0;
    for (const std::int64_t count : {1, 1023, 40'000, 1 << 20}) {
      const Tensor x = torch::randn({count}, torch::kCUDA);
      const Tensor y = torch::empty({count}, x.options().dtype(half));
      ops->cast_noting_error(y.data_ptr(), type, x.data_ptr(), static_cast<std::size_t>(count));
      EXPECT_TRUE(torch::equal(y, x.to(half))) << count;
      const Tensor wide = x.to(torch::kFloat64);
      error += (y.to(torch::kFloat64) - wide).square().sum().item<double>();
      norm += wide.square().sum().item<double>();
    }
    const CastError found = ops->take_cast_error();
    EXPECT_NEAR(found.squared_error / error, 1, 1e-5);
    EXPECT_NEAR(found.squared_norm / norm, 1, 1e-5);
    EXPECT_EQ(ops->take_cast_error().squared_norm, 0);
  }
}

}  // namespace
}  // namespace tessera::testing
