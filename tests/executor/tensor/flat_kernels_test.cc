// The CUDA kernels over flat buffers equal their LibTorch references: AdamW, sums, copies, casts.
#include <c10/cuda/CUDAStream.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <array>
#include <cmath>
#include <numeric>

#include "executor/kernels/range_sums.h"
#include "executor/tensor/placed_chunks.h"
#include "executor/tensor/range_copies.h"
#include "executor/tensor/torch_memory_ops.h"
#include "tests/executor/tensor/kernels_fixture.h"

namespace tessera::testing {
namespace {

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
    const Tensor pool = torch::randn({1'200'036}, options);
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

/// One row and many, adjacent and not, aligned and odd, longer than a chunk; the host's sums are
/// those of tests/executor/certificate.
TEST_F(Kernels, DigestsAreTheHostsBitForBit) {
  using kernels::DigestPiece, kernels::DigestRead;
  const Tensor host = torch::randn({std::int64_t{1} << 20});
  const Tensor device = host.to(torch::kCUDA);
  const auto* bytes = static_cast<const std::byte*>(host.const_data_ptr());
  const auto* there = static_cast<const std::byte*>(device.const_data_ptr());
  for (const DigestRead read : {DigestRead::bits16, DigestRead::bits32, DigestRead::fp32_as_bf16,
                                DigestRead::fp32_as_fp16}) {
    const auto width = static_cast<std::int64_t>(kernels::bytes_of(read));
    std::vector<DigestPiece> pieces;  // without their data
    std::vector<std::int64_t> places;
    const auto add = [&](std::int64_t place, std::int64_t rows, std::int64_t columns,
                         std::int64_t pitch) {
      const std::uint64_t step = kernels::kDigestStep;
      pieces.push_back({.rows = rows,
                        .columns = columns,
                        .pitch = pitch,
                        .key = 17 * step,
                        .row_step = 3 * step,
                        .column_step = static_cast<std::uint64_t>(1000 * rows + 1) * step});
      places.push_back(place * width);
    };
    add(0, 1, 1, 1);
    add(0, 1, 700'000, 1);
    add(3, 1, 300'001, 1);
    add(64, 300, 1024, 1024);
    add(8, 200, 512, 4096);
    add(5, 77, 33, 129);
    add(16, 3, 262'144, 262'144);
    add(1, 100'000, 1, 7);
    std::vector<DigestPiece> on_device = pieces;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].data = bytes + places[i];
      on_device[i].data = there + places[i];
    }
    EXPECT_EQ(make_torch_memory_ops(0)->digests(on_device, read),
              host_memory_ops().digests(pieces, read));
  }
  EXPECT_TRUE(make_torch_memory_ops(0)->digests({}, DigestRead::bits16).empty());
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
  for (int turn = 0; turn < 3; ++turn) {  // the second time from a kept list, the third by few
    const Tensor to = torch::zeros({size}, there.options());
    Tensor expected = torch::zeros({size}, torch::kUInt8);
    CopyBatch batch;
    for (const auto& [source, target, bytes] : copies) {
      expected.narrow(0, target, bytes).copy_(from.narrow(0, source, bytes));
      batch.add(to.mutable_data_ptr<std::uint8_t>() + target,
                there.const_data_ptr<std::uint8_t>() + source, static_cast<std::size_t>(bytes));
    }
    copy(batch, turn == 2, c10::cuda::getCurrentCUDAStream(0).stream());
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
