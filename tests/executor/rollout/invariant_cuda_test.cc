// The fixed order on a GPU: with CUDA graphs, pages, texts that leave and come back and shared
// beginnings a sample has the bits of that sample alone, and the trainer's pass computes them.
#include <gmock/gmock.h>

#include <cmath>
#include <optional>

#include "executor/model/ordered_attention.h"
#include "executor/model/ordered_ops.h"
#include "executor/model/scores.h"
#include "executor/rollout/generate.h"
#include "tests/executor/model/fixture.h"
#include "tests/executor/rollout/gpu_stream.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

class FixedOrderOnGpu : public OnGpuStream {};

ModelSpec model_of(std::int64_t head_dim, bool qk_norm, std::int64_t window = 0) {
  ModelSpec spec = small_model(6, 2, 3);
  if (qk_norm) spec.family = ModelFamily::qwen3;
  spec.qk_norm = qk_norm;
  spec.qkv_bias = spec.qkv_bias && !qk_norm;
  spec.hidden = 384;
  spec.head_dim = head_dim;
  spec.ffn = 640;
  spec.vocab = 520;
  spec.sliding_window = window;
  return spec;
}

Weights on_gpu(const ModelSpec& spec) {
  ParallelLayout layout;
  layout.stages = even_stages(spec.layers, 1);
  Weights weights = make_weights(parameter_table(spec), layout, {}, DType::bf16, torch::kCUDA);
  initialize(weights, 5, 0.08, torch::kCPU);
  return weights;
}

std::vector<TokenPrompt> prompts(int count, int samples, const ModelSpec& spec) {
  std::vector<TokenPrompt> result;
  for (int i = 0; i < count; ++i) {
    TokenPrompt prompt{.prompt_index = i, .uid = "u" + std::to_string(i), .samples = samples};
    for (int t = 0; t < 2 + (29 * i) % 190; ++t) {
      prompt.tokens.push_back((7 * i + 3 * t + 1) % static_cast<int>(spec.vocab));
    }
    result.push_back(prompt);
  }
  return result;
}

RolloutOptions roomy() {
  return {
      .sampling = {.temperature = 0.9}, .seed = 7, .max_response_tokens = 90, .max_sequences = 64};
}

std::vector<Sequence> one_by_one(const Weights& weights, const ParallelGroups& groups,
                                 const std::vector<TokenPrompt>& all, RolloutOptions options) {
  options.max_sequences = 1;
  RolloutEngine engine(weights, groups, SumOrder::fixed);
  std::vector<Sequence> result;
  for (const TokenPrompt& prompt : all) {
    const auto mine = engine.generate(5, {&prompt, 1}, options).sequences;
    result.insert(result.end(), mine.begin(), mine.end());
  }
  return result;
}

/// Log-probs of every token of the texts but the first, by the trainer's pass.
std::vector<float> scored(const Weights& weights, const ParallelGroups& groups,
                          const std::vector<Sequence>& sequences, double temperature,
                          SumOrder order) {
  const torch::NoGradGuard no_grad;
  std::vector<std::vector<std::int64_t>> texts;
  for (const Sequence& s : sequences) {
    texts.emplace_back(s.prompt.begin(), s.prompt.end());
    texts.back().insert(texts.back().end(), s.response.begin(), s.response.end());
  }
  const PackedTokens packed = pack_tokens(texts, weights.device());
  const Tensor hidden = stage_forward(weights, groups, packed, {}, {.order = order});
  const Tensor host =
      score_tokens(weights, groups, hidden, packed.ids.roll(-1),
                   {.temperature = temperature, .entropy = true, .chunk_rows = 500, .order = order})
          .log_prob.cpu()
          .contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

void expect_trainers(const Weights& weights, const ParallelGroups& groups,
                     const std::vector<Sequence>& sequences, double temperature) {
  const auto fixed = scored(weights, groups, sequences, temperature, SumOrder::fixed);
  const auto fast = scored(weights, groups, sequences, temperature, SumOrder::fastest);
  std::size_t row = 0, differ = 0;
  double gap = 0;
  for (const Sequence& s : sequences) {
    row += s.prompt.size() - 1;
    for (const float drawn : s.rollout_log_prob) {
      EXPECT_EQ(fixed[row], drawn);
      differ += fast[row] != drawn ? 1 : 0;
      gap = std::max(gap, std::abs(static_cast<double>(fast[row]) - drawn));
      ++row;
    }
    ++row;
  }
  EXPECT_GT(differ, 0U) << "the fastest order has the same bits already";
  EXPECT_LT(gap, 0.2) << "it is the same model";
}

TEST_F(FixedOrderOnGpu, ASampleHasTheBitsOfThatSampleAlone) {
  for (const auto& spec : {model_of(64, false), model_of(128, true), model_of(64, false, 50)}) {
    SCOPED_TRACE(spec.head_dim + 1000 * spec.sliding_window);
    const Weights weights = on_gpu(spec);
    const auto all = prompts(9, 4, spec);
    RolloutOptions crowded = roomy();
    crowded.cache_tokens = 1500;
    crowded.prefill_tokens = 70;
    for (const SamplingOptions& sampling :
         {SamplingOptions{.temperature = 0.9}, SamplingOptions{.top_k = 30, .top_p = 0.9}}) {
      crowded.sampling = sampling;
      RolloutOptions plain = roomy();
      plain.sampling = sampling;
      const auto want = one_by_one(weights, alone, all, plain);
      RolloutEngine engine(weights, alone, SumOrder::fixed);
      for (const RolloutOptions& options : {plain, crowded, plain}) {
        const Rollout got = engine.generate(5, all, options);
        if (options.cache_tokens > 0) {
          EXPECT_GT(RolloutEngine(weights, alone, SumOrder::fixed)
                        .generate(5, all, options)
                        .counts.preemptions,
                    0);
        }
        ASSERT_EQ(got.sequences.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
          EXPECT_EQ(got.sequences[i].response, want[i].response) << i;
          EXPECT_EQ(got.sequences[i].rollout_log_prob, want[i].rollout_log_prob) << i;
        }
      }
      expect_trainers(weights, alone, want, sampling.temperature);
    }
  }
}

/// Against fp64 of the same bf16 numbers.
TEST_F(FixedOrderOnGpu, ProductsAreRoundedOnce) {
  torch::manual_seed(8);
  const auto there = torch::TensorOptions().device(torch::kCUDA).dtype(torch::kBFloat16);
  for (const auto& [rows, inputs, outputs] : std::vector<std::array<std::int64_t, 3>>{
           {1, 384, 520}, {77, 1536, 2048}, {1000, 640, 384}}) {
    const Tensor x = torch::randn({rows, inputs}, there),
                 w = torch::randn({outputs, inputs}, there);
    const Tensor want = x.to(torch::kDouble).mm(w.t().to(torch::kDouble));
    for (const Tensor& weight : {w.t(), w.t().contiguous()}) {
      EXPECT_LE(relative_error(ordered_product(x, weight), want), 4e-3);
      const Tensor wide = ordered_product(x, weight, torch::kFloat);
      EXPECT_LE(relative_error(wide, want), 1e-5);
      for (const std::int64_t first : {std::int64_t{0}, rows / 2}) {
        const std::int64_t count = std::min<std::int64_t>(rows - first, 3);
        EXPECT_TRUE(torch::equal(ordered_product(x.narrow(0, first, count), weight, torch::kFloat),
                                 wide.narrow(0, first, count)));
      }
    }
  }
}

/// Weights change between a run's steps, and further numbers of rows come up with the new ones. The
/// second shape is added up in slices.
TEST_F(FixedOrderOnGpu, RowsOfNewWeightsAgreeToo) {
  torch::manual_seed(10);
  const auto there = torch::TensorOptions().device(torch::kCUDA).dtype(torch::kBFloat16);
  for (const std::int64_t inputs : {448, 4096}) {
    const Tensor x = torch::randn({5000, inputs}, there);
    for (const std::int64_t rows : {3, 40, 300, 5000}) {
      const Tensor w = torch::randn({336, inputs}, there);
      const Tensor all = ordered_product(x.narrow(0, 0, rows), w.t());
      for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1}) {
        EXPECT_TRUE(torch::equal(all[row], ordered_product(x.narrow(0, row, 1), w.t())[0]));
      }
      EXPECT_LE(
          relative_error(all, x.narrow(0, 0, rows).to(torch::kDouble).mm(w.t().to(torch::kDouble))),
          4e-3);
    }
  }
}

/// Against fp64 softmax attention, queries in groups of 3 and of 1.
TEST_F(FixedOrderOnGpu, AttentionIsSoftmaxAttention) {
  torch::manual_seed(9);
  const auto there = torch::TensorOptions().device(torch::kCUDA).dtype(torch::kBFloat16);
  const std::vector<std::int64_t> lengths{130, 1, 1300, 17};
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t kv : {2, 6}) {
      for (const std::int64_t window : {0, 40}) {
        const Tensor q = torch::randn({1448, 6, dim}, there);
        const Tensor k = torch::randn({1448, kv, dim}, there),
                     v = torch::randn({1448, kv, dim}, there);
        const fused::PagedRows rows = packed_rows(lengths, torch::kCUDA);
        const Tensor got =
            fused::attend_in_order(rows, q, {k.unsqueeze(2), v.unsqueeze(2)}, window);
        std::int64_t first = 0;
        for (const std::int64_t n : lengths) {
          const auto heads = [&](const Tensor& x) {
            return x.narrow(0, first, n)
                .to(torch::kDouble)
                .transpose(0, 1)
                .repeat_interleave(6 / x.size(1), 0);
          };
          const Tensor at = torch::arange(n, there.dtype(torch::kLong));
          const Tensor ahead = at.unsqueeze(0) - at.unsqueeze(1);
          Tensor hidden = ahead > 0;
          if (window > 0) hidden = hidden.logical_or(ahead <= -window);
          const Tensor weights =
              (heads(q).matmul(heads(k).transpose(1, 2)) / std::sqrt(static_cast<double>(dim)))
                  .masked_fill(hidden, -INFINITY)
                  .softmax(-1);
          EXPECT_LE(relative_error(got.narrow(0, first, n).to(torch::kDouble),
                                   weights.matmul(heads(v)).transpose(0, 1)),
                    1e-2)
              << dim << " " << kv << " " << window << " " << n;
          first += n;
        }
      }
    }
  }
}

/// A row's tokens in pages of 64, each row's in pages of its own and from the last page backwards.
fused::PagedCache in_pages(const Tensor& keys, const Tensor& values, std::int64_t row_pages,
                           std::span<const std::int64_t> lengths, Tensor& table) {
  const auto rows = static_cast<std::int64_t>(lengths.size());
  const auto there = keys.options();
  const std::vector<std::int64_t> shape{rows * row_pages, keys.size(1), 64, keys.size(2)};
  const fused::PagedCache cache{torch::full(shape, NAN, there), torch::full(shape, NAN, there)};
  table = (rows * row_pages - 1 - torch::arange(rows * row_pages, torch::kInt))
              .view({rows, row_pages})
              .to(torch::kCUDA);
  std::int64_t first = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = lengths[static_cast<std::size_t>(row)];
    const Tensor at = torch::arange(length, there.dtype(torch::kLong));
    const Tensor page = rows * row_pages - 1 - (row * row_pages + at.div(64, "floor"));
    cache.keys.transpose(1, 2).index_put_({page, at.remainder(64)}, keys.narrow(0, first, length));
    cache.values.transpose(1, 2).index_put_({page, at.remainder(64)},
                                            values.narrow(0, first, length));
    first += length;
  }
  return cache;
}

/// Of texts with several splits of keys: a query that decodes, or that comes in a piece, has the
/// bits that it has in the packed text.
TEST_F(FixedOrderOnGpu, AQueryHasOneResultInEveryKernel) {
  torch::manual_seed(12);
  const auto there = torch::TensorOptions().device(torch::kCUDA).dtype(torch::kBFloat16);
  const std::vector<std::int64_t> lengths{1, 130, 513, 1301}, starts{0, 1, 131, 644};
  constexpr std::int64_t kTokens = 1945, kRowPages = 23;
  for (const auto& [heads, kv, dim, window] : std::vector<std::array<std::int64_t, 4>>{
           {14, 2, 128, 0}, {20, 1, 128, 600}, {6, 6, 64, 0}}) {
    SCOPED_TRACE(dim + heads);
    const Tensor q = torch::randn({kTokens, heads, dim}, there);
    const Tensor k = torch::randn({kTokens, kv, dim}, there), v = torch::randn_like(k);
    const Tensor all = fused::attend_in_order(packed_rows(lengths, torch::kCUDA), q,
                                              {k.unsqueeze(2), v.unsqueeze(2)}, window);
    Tensor table;
    const fused::PagedCache cache = in_pages(k, v, kRowPages, lengths, table);
    for (const std::int64_t piece : {1, 1, 1, 3, 150}) {
      std::vector<std::int32_t> counts, keys, begins{0};
      std::vector<Tensor> tokens;
      for (std::size_t row = 0; row < lengths.size(); ++row) {
        const std::int64_t end = torch::randint(1, lengths[row] + 1, {1}).item<std::int64_t>();
        const std::int64_t count = std::min(piece, end);
        keys.push_back(static_cast<std::int32_t>(end));
        counts.push_back(static_cast<std::int32_t>(count));
        begins.push_back(begins.back() + counts.back());
        tokens.push_back(torch::arange(starts[row] + end - count, starts[row] + end));
      }
      const Tensor chosen = torch::cat(tokens).to(torch::kCUDA);
      const auto ints = [](const std::vector<std::int32_t>& values) {
        return torch::tensor(values, torch::kInt).to(torch::kCUDA);
      };
      const fused::PagedRows rows{.rows = 4,
                                  .tokens = begins.back(),
                                  .longest_queries = piece,
                                  .longest_keys = kRowPages * 64,
                                  .query_lengths = ints(counts),
                                  .key_lengths = ints(keys),
                                  .query_starts = ints(begins),
                                  .page_table = table};
      EXPECT_TRUE(
          torch::equal(fused::attend_in_order(rows, q.index_select(0, chosen), cache, window),
                       all.index_select(0, chosen)))
          << piece;
    }
  }
}

}  // namespace
}  // namespace tessera::testing
