// Generation on a GPU: what the kernels draw, what graphs replay, and what training says of it.
#include <gmock/gmock.h>

#include <optional>

#include "executor/comm/thread_communicator.h"
#include "executor/model/paged_kernels.h"
#include "executor/model/scores.h"
#include "executor/rollout/generate.h"
#include "executor/rollout/paged_model.h"
#include "executor/rollout/sample_rows.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/fused_settings.h"
#include "tests/executor/model/fixture.h"
#include "tests/executor/rollout/device_threads.h"
#include "tests/executor/rollout/gpu_stream.h"
#include "tests/executor/rollout/paged_texts.h"
#include "tests/executor/rollout/recomputed.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

class RolloutOnGpu : public OnGpuStream {};

ModelSpec medium_model(std::int64_t window = 0) {
  ModelSpec spec = small_model(6, 2, 3);
  spec.hidden = 384;
  spec.head_dim = 64;
  spec.ffn = 640;
  spec.vocab = 515;
  spec.sliding_window = window;
  return spec;
}

Weights on_gpu(const ModelSpec& spec, DType dtype) {
  ParallelLayout layout;
  layout.stages = even_stages(spec.layers, 1);
  Weights weights = make_weights(parameter_table(spec), layout, {}, dtype, torch::kCUDA);
  initialize(weights, 5, 0.08, torch::kCPU);
  return weights;
}

TEST_F(RolloutOnGpu, TheKernelDrawsTheHostsTokens) {
  torch::manual_seed(3);
  for (const std::int64_t vocab : {37, 5003, 152064}) {
    const Tensor logits = torch::randn({5, vocab}) * 3;
    const std::vector<std::int64_t> rows{0, 1, 2, 3, 4, 2, 2, 0, 4};
    std::vector<double> uniforms;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      uniforms.push_back(uniform(9, {0, 0, 0, static_cast<std::uint32_t>(i)}));
    }
    const auto there = [](const auto& values, torch::ScalarType type) {
      return torch::tensor(values, type).to(torch::kCUDA);
    };
    const Tensor slots = torch::arange(9, torch::kLong).flip(0).to(torch::kCUDA);
    for (const double temperature : {0.0, 0.6, 1.0, 1.7}) {
      Tensor last =
          torch::zeros({9}, torch::TensorOptions().dtype(torch::kLong).device(torch::kCUDA));
      for (const double min_p : {0.0, 0.02, 0.4, 1.0}) {
        const SamplingOptions options{.temperature = temperature, .min_p = min_p};
        const fused::Drawn drawn = fused::draw_tokens(
            temperature, least_weight(options), logits.to(torch::kCUDA),
            {there(rows, torch::kLong), there(uniforms, torch::kDouble), slots, last});
        const std::vector<Draw> got = draws_of({drawn.tokens, drawn.log_probs});
        const std::vector<Draw> want = sample_rows(logits, rows, uniforms, options);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          EXPECT_EQ(got[i].token, want[i].token)
              << vocab << " at " << temperature << ", min_p " << min_p;
          EXPECT_NEAR(got[i].log_prob, want[i].log_prob, 1e-6);
          EXPECT_EQ(last[8 - static_cast<std::int64_t>(i)].item<std::int64_t>(), want[i].token);
        }
      }
    }
    Tensor bad = logits.to(torch::kCUDA);
    bad[1][7] = std::numeric_limits<float>::quiet_NaN();
    Tensor last =
        torch::zeros({9}, torch::TensorOptions().dtype(torch::kLong).device(torch::kCUDA));
    const fused::Drawn drawn = fused::draw_tokens(
        1.0, 0, bad, {there(rows, torch::kLong), there(uniforms, torch::kDouble), slots, last});
    EXPECT_EQ(drawn.tokens[1].item<int>(), -1);
    EXPECT_GE(drawn.tokens[0].item<int>(), 0);
  }
}

TEST_F(RolloutOnGpu, RanksWithSomeColumnsEachDrawTheTokensAndBitsOfOne) {
  torch::manual_seed(4);
  const auto type = torch::TensorOptions().device(torch::kCUDA);
  for (const std::int64_t vocab : {37, 5003, 152064}) {
    Tensor logits = (torch::randn({6, vocab}) * 3).to(torch::kCUDA);
    logits[3] = logits[3].clamp_max(0.5);  // several largest
    logits[5][vocab - 2] = std::numeric_limits<float>::quiet_NaN();
    const Tensor rows = torch::tensor({0, 1, 2, 3, 4, 2, 5, 0, 4}, type.dtype(torch::kLong));
    const Tensor uniforms = torch::rand({9}, type.dtype(torch::kDouble));
    const Tensor slots = torch::arange(9, type.dtype(torch::kLong)).flip(0);
    torch::cuda::synchronize();
    for (const int ranks : {2, 3}) {
      run_ranks(ranks, [&](Communicator& host) {
        const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
        DeviceThreads group(host);
        const Interval own = split(vocab, ranks, host.rank());
        const Tensor mine = logits.narrow(1, own.lo, own.size()).contiguous();
        for (const double temperature : {0.0, 0.6, 1.0}) {
          for (const double min_p : {0.0, 0.02, 1.0}) {
            const std::int64_t least = least_weight({.temperature = temperature, .min_p = min_p});
            const Tensor last = torch::zeros({9}, type.dtype(torch::kLong)),
                         want_last = torch::zeros_like(last);
            const fused::Drawn want =
                fused::draw_tokens(temperature, least, logits, {rows, uniforms, slots, want_last});
            const fused::Drawn got = fused::draw_over_columns(temperature, least, mine, own.lo,
                                                              {rows, uniforms, slots, last}, group);
            const auto where = "vocabulary " + std::to_string(vocab) + ", rank " +
                               std::to_string(host.rank()) + " of " + std::to_string(ranks) +
                               ", temperature " + std::to_string(temperature);
            EXPECT_TRUE(torch::equal(got.tokens, want.tokens)) << where;
            EXPECT_TRUE(torch::equal(last, want_last)) << where;
            EXPECT_EQ(got.tokens[6].item<int>(), -1) << where;
            const Tensor drawn = want.tokens.ge(0);
            EXPECT_TRUE(torch::equal(got.log_probs.masked_select(drawn).view(torch::kInt),
                                     want.log_probs.masked_select(drawn).view(torch::kInt)))
                << where;
          }
        }
      });
    }
  }
}

Texts drawn_texts(const ModelSpec& spec, const std::vector<std::int64_t>& lengths) {
  torch::manual_seed(11);
  Texts texts;
  for (const std::int64_t length : lengths) {
    const Tensor ids = torch::randint(spec.vocab, {length}, torch::kInt64);
    texts.emplace_back(ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + length);
  }
  return texts;
}

TEST_F(RolloutOnGpu, PiecesOfTextsHaveTheLogitsOfTheFullForward) {
  for (const std::int64_t window : {0, 24}) {
    const ModelSpec spec = medium_model(window);
    const Texts texts = drawn_texts(spec, {210, 140, 90, 110});
    for (const auto& [dtype, tolerance] : {std::pair{DType::fp32, 1e-5}, {DType::bf16, 3e-2}}) {
      const torch::NoGradGuard no_grad;
      const Weights weights = on_gpu(spec, dtype);
      const PackedTokens packed = pack_tokens(texts, torch::kCUDA);
      const auto want = full_logits(weights, alone, stage_forward(weights, alone, packed))
                            .cpu()
                            .split_with_sizes(packed.lengths);
      PagedTexts paged(weights, alone, texts, 64, /*pads=*/true);
      const std::vector<std::vector<Piece>> passes = {{{0, 50}},
                                                      {{0, 1}, {1, 30}},
                                                      {{0, 1}, {1, 1}, {2, 90}, {3, 20}},
                                                      {{0, 70}, {1, 100}, {3, 90}},
                                                      {{0, 1}, {1, 1}},
                                                      {{0, 87}, {1, 8}}};
      for (const auto& pieces : passes) {
        const Tensor logits = paged.advance(pieces);
        for (std::size_t i = 0; i < pieces.size(); ++i) {
          EXPECT_LE(relative_error(logits[static_cast<std::int64_t>(i)],
                                   want[pieces[i].index][paged.done(pieces[i].index) - 1]),
                    tolerance)
              << "text " << pieces[i].index << " window " << window;
        }
      }
      for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(paged.ended(i));
    }
  }
}

TEST_F(RolloutOnGpu, LogProbsAreTrainingsWithGraphsPreemptionAndSharedPages) {
  const torch::NoGradGuard no_grad;
  const ModelSpec spec = medium_model();
  for (const auto& [dtype, tolerance] : {std::pair{DType::fp32, 2e-4}, {DType::bf16, 0.06}}) {
    const Weights weights = on_gpu(spec, dtype);
    RolloutEngine engine(weights, alone);
    const RolloutOptions options{.seed = 7,
                                 .max_response_tokens = 150,
                                 .eos = {3, 11},
                                 .max_sequences = 24,
                                 .prefill_tokens = 200};
    const auto all = prompts(13, 4, spec);
    const Rollout first = engine.generate(5, all, options);
    EXPECT_EQ(first.sequences.size(), 52u);
    EXPECT_LE(largest_gap(weights, alone, first.sequences), tolerance);
    // The second time every pass that decodes is a replayed graph.
    const Rollout second = engine.generate(5, all, options);
    EXPECT_LE(largest_gap(weights, alone, second.sequences), tolerance);
    if (dtype == DType::fp32) {
      for (std::size_t i = 0; i < first.sequences.size(); ++i) {
        EXPECT_EQ(first.sequences[i].response, second.sequences[i].response) << i;
      }
    }
  }
}

/// Until it goes, the process repeats its bits.
struct Deterministic {
  Deterministic() { fused::set_deterministic(true); }
  ~Deterministic() { fused::set_deterministic(false); }
};

// Texts of several pages: where cuDNN adds up their keys, some rows differ from run to run.
TEST_F(RolloutOnGpu, DeterministicGenerationRepeatsItsBits) {
  const torch::NoGradGuard no_grad;
  const Deterministic deterministic;
  const ModelSpec spec = medium_model();
  const Weights weights = on_gpu(spec, DType::bf16);
  const RolloutOptions options{.seed = 7, .max_response_tokens = 300, .max_sequences = 64};
  const auto all = prompts(16, 4, spec);
  const Rollout first = RolloutEngine(weights, alone).generate(5, all, options);
  // Of 19,200 tokens, whose training pass adds up in another order: 0.078 on an H100.
  EXPECT_LE(largest_gap(weights, alone, first.sequences), 0.12);
  for (int i = 0; i < 6; ++i) {
    const Rollout again = RolloutEngine(weights, alone).generate(5, all, options);
    EXPECT_EQ(first.sequences, again.sequences) << i;
  }
}

TEST_F(RolloutOnGpu, NewWeightsAreSeenByGraphsThatWereCapturedBefore) {
  const torch::NoGradGuard no_grad;
  Weights weights = on_gpu(medium_model(), DType::bf16);
  RolloutEngine engine(weights, alone);
  const RolloutOptions options{.seed = 7, .max_response_tokens = 20, .max_sequences = 8};
  const auto all = prompts(4, 2, medium_model());
  engine.generate(1, all, options);
  const Rollout before = engine.generate(1, all, options);
  initialize(weights, 6, 0.08, torch::kCPU);
  const Rollout after = engine.generate(1, all, options);
  EXPECT_NE(before.sequences, after.sequences);
  EXPECT_LE(largest_gap(weights, alone, after.sequences), 0.06);
}

}  // namespace
}  // namespace tessera::testing
