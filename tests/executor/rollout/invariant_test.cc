// The fixed order (SumOrder::fixed): a sample's tokens and log-probs have the bits of that sample
// generated alone, whatever is beside it, and those that the trainer computes of the text.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <mutex>

#include "executor/model/ordered_attention.h"
#include "executor/model/scores.h"
#include "executor/ordered/ordered_loops.h"
#include "executor/rollout/generate.h"
#include "executor/rollout/prompt_dealing.h"
#include "tests/executor/model/fixture.h"

namespace tessera {
namespace {

using testing::Degrees;

/// Sizes that fill no vector and no tile; biases and norms of heads beside them.
ModelSpec spec() {
  ModelSpec model = testing::small_model(4, 2);
  model.hidden = 52;
  model.ffn = 75;
  model.vocab = 61;
  model.head_dim = 22;
  return model;
}

std::vector<TokenPrompt> prompts(int count, int samples) {
  std::vector<TokenPrompt> result;
  for (int i = 0; i < count; ++i) {
    TokenPrompt prompt{.prompt_index = i, .uid = "u" + std::to_string(i), .samples = samples};
    for (int t = 0; t < 3 + (11 * i) % 40; ++t) {
      prompt.tokens.push_back((7 * i + 3 * t + 1) % static_cast<int>(spec().vocab));
    }
    result.push_back(prompt);
  }
  return result;
}

RolloutOptions roomy() {
  return {
      .sampling = {.temperature = 0.8}, .seed = 7, .max_response_tokens = 24, .max_sequences = 64};
}

struct Generated {
  std::vector<Sequence> sequences;
  std::int64_t preemptions = 0;
};

Generated generated(Degrees degrees, std::span<const TokenPrompt> all,
                    const RolloutOptions& options, SumOrder order = SumOrder::fixed) {
  std::mutex mutex;
  Generated result;
  testing::on_ranks(
      spec(), degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
        const Weights weights = testing::loaded(spec(), layout, groups, {});
        const Rollout rollout =
            RolloutEngine(weights, groups, order)
                .generate(5, prompts_of_replica(all, groups.dp_size, groups.dp_rank), options);
        const std::lock_guard lock(mutex);
        if (groups.coord.tp != 0) return;
        result.preemptions += rollout.counts.preemptions;
        result.sequences.insert(result.sequences.end(), rollout.sequences.begin(),
                                rollout.sequences.end());
      });
  std::sort(result.sequences.begin(), result.sequences.end(),
            [](const Sequence& a, const Sequence& b) {
              return std::pair(a.prompt_index, a.sample_index) <
                     std::pair(b.prompt_index, b.sample_index);
            });
  return result;
}

/// Every sample in a generation of its own: its prompt alone, one sequence at a time.
std::vector<Sequence> one_by_one(Degrees degrees, std::span<const TokenPrompt> all) {
  RolloutOptions single = roomy();
  single.max_sequences = 1;
  std::vector<Sequence> result;
  for (const TokenPrompt& prompt : all) {
    const auto mine = generated({.tp = degrees.tp}, {&prompt, 1}, single).sequences;
    result.insert(result.end(), mine.begin(), mine.end());
  }
  return result;
}

/// Exact: Sequence compares floats by value, and none is NaN.
void expect_same_bits(const std::vector<Sequence>& got, const std::vector<Sequence>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "prompt " << want[i].prompt_index << " sample " << want[i].sample_index);
    EXPECT_EQ(got[i].response, want[i].response);
    EXPECT_EQ(got[i].rollout_log_prob, want[i].rollout_log_prob);
  }
}

RC_GTEST_PROP(BatchInvariance, RandomSchedulesSayWhatASampleAloneSays, ()) {
  const int tp = *rc::gen::element(1, 1, 2, 3), dp = *rc::gen::element(1, 2);
  const auto all = prompts(*rc::gen::inRange(2, 7), *rc::gen::inRange(1, 4));
  RolloutOptions options = roomy();
  options.max_sequences = *rc::gen::inRange(1, 20);
  options.prefill_tokens = *rc::gen::element(0, 1, 3, 7, 16, 64);
  options.cache_tokens = *rc::gen::element(0, 80, 112, 200);
  const Degrees degrees{.tp = tp, .dp = dp};
  const auto want = one_by_one(degrees, all);
  const auto got = generated(degrees, all, options).sequences;
  RC_ASSERT(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    RC_ASSERT(got[i].response == want[i].response);
    RC_ASSERT(got[i].rollout_log_prob == want[i].rollout_log_prob);
  }
}

TEST(BatchInvariance, HoldsWhereTextsLeaveAndComeBack) {
  const auto all = prompts(6, 3);
  RolloutOptions crowded = roomy();
  crowded.cache_tokens = 112;
  crowded.prefill_tokens = 5;
  for (const Degrees& degrees : {Degrees{}, Degrees{.tp = 2}, Degrees{.tp = 4}}) {
    const Generated got = generated(degrees, all, crowded);
    EXPECT_GT(got.preemptions, 0);
    expect_same_bits(got.sequences, one_by_one(degrees, all));
  }
}

/// The mode is what does it: without it some log-prob has other bits.
TEST(BatchInvariance, IsNotThereWithoutTheFixedOrder) {
  const auto all = prompts(6, 3);
  RolloutOptions single = roomy(), crowded = roomy();
  single.max_sequences = 1;
  crowded.prefill_tokens = 5;
  const auto alone = generated({}, all, single, SumOrder::fastest).sequences;
  const auto beside = generated({}, all, crowded, SumOrder::fastest).sequences;
  bool differ = false;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    differ = differ || alone[i].rollout_log_prob != beside[i].rollout_log_prob;
  }
  EXPECT_TRUE(differ);
}

std::vector<float> scored(const Weights& weights, const ParallelGroups& groups,
                          const std::vector<std::vector<std::int64_t>>& texts, SumOrder order) {
  const torch::NoGradGuard no_grad;
  const PackedTokens packed = pack_tokens(texts, weights.device());
  const torch::Tensor hidden = stage_forward(weights, groups, packed, {}, {.order = order});
  const TokenScores scores = score_tokens(weights, groups, hidden, packed.ids.roll(-1),
                                          {.temperature = 0.8, .chunk_rows = 37, .order = order});
  EXPECT_TRUE(scores.entropy.isfinite().all().item<bool>());
  const torch::Tensor host = scores.log_prob.contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

TEST(BatchInvariance, TheTrainersPassComputesTheRolloutsLogProbs) {
  const auto all = prompts(6, 3);
  RolloutOptions crowded = roomy();
  crowded.cache_tokens = 112;
  crowded.prefill_tokens = 5;
  for (const int tp : {1, 2, 4}) {
    SCOPED_TRACE(tp);
    const auto sequences = generated({.tp = tp}, all, crowded).sequences;
    std::vector<std::vector<std::int64_t>> texts;
    for (const Sequence& s : sequences) {
      texts.emplace_back(s.prompt.begin(), s.prompt.end());
      texts.back().insert(texts.back().end(), s.response.begin(), s.response.end());
    }
    testing::on_ranks(spec(), {.tp = tp},
                      [&](const ParallelLayout& layout, const ParallelGroups& groups) {
                        const Weights weights = testing::loaded(spec(), layout, groups, {});
                        const auto fixed = scored(weights, groups, texts, SumOrder::fixed);
                        const auto fast = scored(weights, groups, texts, SumOrder::fastest);
                        std::size_t row = 0;
                        for (const Sequence& s : sequences) {
                          row += s.prompt.size() - 1;
                          for (const float drawn : s.rollout_log_prob) {
                            EXPECT_EQ(fixed[row], drawn);
                            EXPECT_NEAR(fast[row], drawn, 2e-5);  // the same model by LibTorch
                            ++row;
                          }
                          ++row;
                        }
                      });
  }
}

/// The order that the header states, by hand.
float stated_dot(const float* a, const float* b, std::int64_t count) {
  std::vector<float> lanes(16, 0.0F);
  for (std::int64_t k = 0; k < count; ++k) {
    const volatile float product = a[k] * b[k];  // rounded by itself
    lanes[static_cast<std::size_t>(k % 16)] += product;
  }
  for (std::size_t step = 8; step > 0; step /= 2) {
    for (std::size_t l = 0; l < step; ++l) lanes[l] += lanes[l + step];
  }
  return lanes[0];
}

TEST(OrderedLoops, AddUpInTheStatedOrder) {
  torch::manual_seed(4);
  for (const auto& [rows, inputs, outputs] : std::vector<std::array<std::int64_t, 3>>{
           {1, 5, 3}, {9, 67, 33}, {4, 128, 64}, {7, 16, 65}}) {
    const torch::Tensor x = torch::randn({rows, inputs}), w = torch::randn({outputs, inputs});
    const torch::Tensor turned = w.t().contiguous();
    const ProductShape shape{rows, inputs, outputs, inputs, outputs};
    torch::Tensor dots = torch::empty({rows, outputs}), sums = torch::empty({rows, outputs});
    ordered_dots(shape, x.const_data_ptr<float>(), w.const_data_ptr<float>(),
                 dots.data_ptr<float>(), 1);
    ordered_sums(shape, x.const_data_ptr<float>(), turned.const_data_ptr<float>(), outputs,
                 sums.data_ptr<float>(), 3);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float *a = x.const_data_ptr<float>() + r * inputs,
                    *b = w.const_data_ptr<float>() + o * inputs;
        EXPECT_EQ(dots[r][o].item<float>(), stated_dot(a, b, inputs));
        float sum = 0;
        for (std::int64_t k = 0; k < inputs; ++k) {
          const volatile float product = a[k] * b[k];
          sum += product;
        }
        EXPECT_EQ(sums[r][o].item<float>(), sum);
      }
    }
  }
}

/// LibTorch's attention in fp64 of every query, with windows and heads in groups.
TEST(OrderedLoops, AttendAsSoftmaxDoes) {
  torch::manual_seed(5);
  const std::vector<std::int64_t> lengths{9, 1, 30}, kv_of_head{0, 0, 1, 1};
  const auto rows = torch::randn({40, 4, 22});
  const fused::PagedCache cache{torch::randn({40, 2, 1, 22}), torch::randn({40, 2, 1, 22})};
  const HeadRange heads{{0, 4}, {0, 2}, kv_of_head};
  for (const std::int64_t window : {0, 6}) {
    testing::on_ranks(spec(), {}, [&](const ParallelLayout&, const ParallelGroups&) {
      OrderedPlan plan;
      std::vector<std::int32_t> sizes(lengths.begin(), lengths.end()), starts{0, 9, 10, 40}, table;
      for (const std::int64_t first : {0, 9, 10}) {
        for (std::int64_t key = 0; key < 30; ++key) {
          table.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(first + key, 39)));
        }
      }
      plan.rows = {.rows = 3,
                   .tokens = 40,
                   .longest_queries = 30,
                   .longest_keys = 30,
                   .query_lengths = torch::tensor(sizes, torch::kInt),
                   .key_lengths = torch::tensor(sizes, torch::kInt),
                   .query_starts = torch::tensor(starts, torch::kInt),
                   .page_table = torch::tensor(table, torch::kInt).view({3, 30})};
      const torch::Tensor got = attend_in_order(plan.rows, heads, rows, cache, window);
      for (std::size_t s = 0; s < 3; ++s) {
        for (std::int64_t t = 0; t < lengths[s]; ++t) {
          const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, t - window + 1) : 0;
          for (std::int64_t h = 0; h < 4; ++h) {
            const auto of = [&](const torch::Tensor& x) {
              return x.select(1, h / 2)
                  .squeeze(1)
                  .slice(0, starts[s] + first, starts[s] + t + 1)
                  .to(torch::kDouble);
            };
            const torch::Tensor q = rows[starts[s] + t][h].to(torch::kDouble);
            const torch::Tensor weight = (of(cache.keys).matmul(q) / std::sqrt(22.0)).softmax(0);
            EXPECT_LE(testing::relative_error(got[starts[s] + t][h].to(torch::kDouble),
                                              weight.matmul(of(cache.values))),
                      1e-6);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace tessera
