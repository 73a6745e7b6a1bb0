#include "executor/rollout/generate.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>

#include "executor/model/scores.h"
#include "executor/rollout/prompt_dealing.h"
#include "tests/executor/model/fixture.h"
#include "tests/executor/rollout/recomputed.h"

namespace tessera {
namespace {

using testing::Degrees;

const ModelSpec& spec() {
  static const ModelSpec value = testing::small_model(4, 2);
  return value;
}

std::vector<TokenPrompt> prompts(int count, int samples) {
  std::vector<TokenPrompt> result;
  for (int i = 0; i < count; ++i) {
    TokenPrompt prompt{.prompt_index = i, .uid = "u" + std::to_string(i), .samples = samples};
    for (int t = 0; t < 2 + (5 * i) % 7; ++t) {
      prompt.tokens.push_back((7 * i + 3 * t + 1) % static_cast<int>(spec().vocab));
    }
    result.push_back(prompt);
  }
  return result;
}

RolloutOptions options() {
  return {
      .sampling = {.temperature = 1.0}, .seed = 7, .max_response_tokens = 12, .max_sequences = 64};
}

/// Generates on every rank of a layout and returns the sequences of all replicas, after checking
/// that the ranks of one replica agree. Adds up the preemptions of all ranks.
std::vector<Sequence> generated(Degrees degrees, std::span<const TokenPrompt> all,
                                const RolloutOptions& options, RolloutCounts* counts = nullptr,
                                const ModelSpec& model = spec()) {
  std::mutex mutex;
  std::vector<std::vector<Sequence>> of_replica(static_cast<std::size_t>(degrees.dp));
  testing::on_ranks(
      model, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
        const Weights weights = testing::loaded(model, layout, groups, {});
        const Rollout rollout =
            RolloutEngine(weights, groups)
                .generate(5, prompts_of_replica(all, groups.dp_size, groups.dp_rank), options);
        const std::lock_guard lock(mutex);
        if (counts != nullptr) {
          counts->preemptions += rollout.counts.preemptions;
        }
        auto& mine = of_replica[static_cast<std::size_t>(groups.dp_rank)];
        if (mine.empty()) {
          mine = rollout.sequences;
        } else {
          EXPECT_EQ(mine, rollout.sequences) << "tensor-parallel ranks differ";
        }
      });
  std::vector<Sequence> sequences;
  for (auto& part : of_replica) sequences.insert(sequences.end(), part.begin(), part.end());
  return sequences;
}

void expect_same_text(const std::vector<Sequence>& got, const std::vector<Sequence>& want,
                      float tolerance = 1e-4f) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "prompt " << want[i].prompt_index << " sample " << want[i].sample_index);
    EXPECT_EQ(got[i].prompt_index, want[i].prompt_index);
    EXPECT_EQ(got[i].sample_index, want[i].sample_index);
    EXPECT_EQ(got[i].response, want[i].response);
    EXPECT_EQ(got[i].finished, want[i].finished);
    EXPECT_THAT(got[i].rollout_log_prob,
                ::testing::Pointwise(::testing::FloatNear(tolerance), want[i].rollout_log_prob));
  }
}

/// The logits after `text`, from a forward pass over all of it.
torch::Tensor logits_after(const Weights& weights, const ParallelGroups& groups,
                           const std::vector<std::int64_t>& text) {
  const std::vector<std::vector<std::int64_t>> one = {text};
  const torch::Tensor hidden = stage_forward(weights, groups, pack_tokens(one, weights.device()));
  return full_logits(weights, groups, hidden.slice(0, -1))[0];
}

/// Of every sequence, one forward pass over the whole text for each token.
void expect_repeated_argmax(const ModelSpec& model, Degrees degrees) {
  const auto all = prompts(5, 1);
  RolloutOptions greedy = options();
  greedy.sampling.temperature = 0;
  const auto sequences = generated(degrees, all, greedy, nullptr, model);
  testing::on_ranks(model, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const torch::NoGradGuard no_grad;
    const Weights weights = testing::loaded(model, layout, groups, {});
    for (const Sequence& s : sequences) {
      std::vector<std::int64_t> text(s.prompt.begin(), s.prompt.end());
      ASSERT_EQ(s.response.size(), 12u);
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        const torch::Tensor logits = logits_after(weights, groups, text);
        EXPECT_EQ(s.response[t], logits.argmax().item<std::int64_t>()) << "position " << t;
        EXPECT_NEAR(s.rollout_log_prob[t], logits.log_softmax(0)[s.response[t]].item<float>(),
                    1e-4);
        text.push_back(s.response[t]);
      }
    }
  });
}

TEST(Generate, GreedyDecodingIsRepeatedArgmaxOfTheFullForwardPass) {
  expect_repeated_argmax(spec(), {});
}

/// A Qwen3-MoE of six experts, or a Qwen2-MoE with a shared one.
ModelSpec with_experts(bool shared) {
  ModelSpec model = spec();
  model.family = shared ? ModelFamily::qwen2_moe : ModelFamily::qwen3_moe;
  model.qk_norm = !shared;
  model.moe = MoeSpec{.experts = 6, .experts_per_token = 2, .expert_ffn = 12};
  model.moe->shared_ffn = shared ? 20 : 0;
  model.moe->shared_gate = shared;
  model.moe->normalised = !shared;
  return model;
}

/// Experts dealt to replicas, to those that share some of them, and beside tensor parallelism cut
/// or whole, within a replica and over two.
std::vector<Degrees> dealt_experts() {
  return {{.dp = 2, .ep = 2},
          {.dp = 3, .ep = 3},
          {.dp = 4, .ep = 2},
          {.tp = 2, .dp = 2, .ep = 2},
          {.tp = 2, .dp = 1, .ep = 2, .etp = 1},
          {.tp = 2, .dp = 2, .ep = 2, .etp = 1},
          {.tp = 2, .dp = 2, .ep = 4, .etp = 1},
          {.tp = 2, .dp = 1, .ep = 1, .etp = 1},
          {.tp = 4, .dp = 1, .ep = 1, .etp = 2},
          {.tp = 4, .dp = 1, .ep = 2, .etp = 1},
          {.tp = 4, .dp = 1, .ep = 2, .etp = 2},
          {.tp = 4, .dp = 2, .ep = 2, .etp = 2},
          {.tp = 4, .dp = 2, .ep = 4, .etp = 2}};
}

std::string words(const Degrees& d) {
  return "tp" + std::to_string(d.tp) + " dp" + std::to_string(d.dp) + " ep" + std::to_string(d.ep) +
         (d.etp > 0 ? " etp" + std::to_string(d.etp) : "");
}

TEST(Generate, GreedyDecodingOfExpertsIsRepeatedArgmaxToo) {
  for (const bool shared : {false, true}) {
    std::vector<Degrees> all = dealt_experts();
    all.insert(all.end(), {Degrees{}, {2, 1}, {2, 1, 2}});
    for (const Degrees& degrees : all) {
      SCOPED_TRACE(words(degrees));
      expect_repeated_argmax(with_experts(shared), degrees);
    }
  }
}

/// Three prompts on up to four replicas: some have none, and all end at other passes. The cache
/// holds a part of the texts, prompts come in pieces.
TEST(Generate, ReplicasThatShareExpertsSayWhatOneRankSays) {
  const auto all = prompts(3, 3);
  RolloutOptions sampled = options();
  sampled.eos = {3, 11};
  sampled.max_response_tokens = 24;
  const auto expected = generated({}, all, sampled, nullptr, with_experts(true));
  RolloutOptions crowded = sampled;
  crowded.cache_tokens = 64;
  crowded.prefill_tokens = 3;
  for (const Degrees& degrees : dealt_experts()) {
    SCOPED_TRACE(words(degrees));
    RolloutCounts counts;
    expect_same_text(generated(degrees, all, sampled, nullptr, with_experts(true)), expected,
                     1e-5f);
    expect_same_text(generated(degrees, all, crowded, &counts, with_experts(true)), expected,
                     1e-5f);
    EXPECT_GT(counts.preemptions, 0);
  }
}

/// The experts of each token but the last, by a forward pass over the whole text.
std::vector<std::int16_t> experts_of_text(const Weights& weights, const ParallelGroups& groups,
                                          const Sequence& s) {
  std::vector<std::vector<std::int64_t>> text{{s.prompt.begin(), s.prompt.end()}};
  text[0].insert(text[0].end(), s.response.begin(), s.response.end() - 1);
  const auto tokens = static_cast<std::int64_t>(text[0].size());
  const ModelSpec& model = weights.model();
  StageOptions options;
  options.replay.noted =
      torch::zeros({model.layers, tokens, model.moe->experts_per_token}, torch::kShort);
  stage_forward(weights, groups, pack_tokens(text, torch::kCPU), {}, options);
  const torch::Tensor noted =
      std::get<0>(options.replay.noted.transpose(0, 1).sort(-1)).contiguous();
  const auto* first = noted.const_data_ptr<std::int16_t>();
  return {first, first + noted.numel()};
}

/// Samples that share a prompt's pages or not, prompts in pieces, texts that leave and come back,
/// ranks that bring a share of the rows: every token has the experts that its text gives it.
TEST(Generate, NotesTheExpertsThatTheWholeTextGives) {
  const ModelSpec model = with_experts(false);
  const auto all = prompts(3, 3);
  RolloutOptions crowded = options();
  crowded.eos = {3, 11};
  crowded.max_response_tokens = 24;
  crowded.cache_tokens = 64;
  crowded.prefill_tokens = 3;
  crowded.note_experts = true;
  for (const Degrees& degrees :
       {Degrees{}, Degrees{.tp = 2}, Degrees{.tp = 2, .dp = 2, .ep = 4, .etp = 1},
        Degrees{.tp = 4, .dp = 1, .ep = 2, .etp = 2}}) {
    SCOPED_TRACE(words(degrees));
    RolloutCounts counts;
    auto sequences = generated(degrees, all, crowded, &counts, model);
    EXPECT_GT(counts.preemptions, 0);
    testing::on_ranks(model, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
      const torch::NoGradGuard no_grad;
      const Weights weights = testing::loaded(model, layout, groups, {});
      for (Sequence& s : sequences) {
        for (std::size_t i = 0; i + 1 < s.routed_experts.size(); i += 2) {
          if (s.routed_experts[i] > s.routed_experts[i + 1])
            std::swap(s.routed_experts[i], s.routed_experts[i + 1]);
        }
        EXPECT_EQ(s.routed_experts, experts_of_text(weights, groups, s));
      }
    });
  }
}

/// What transformers computes of a whole text is what generation over shared experts says of it.
TEST(Generate, ReplicasThatShareExpertsComputeTransformersLogits) {
  for (const char* name : {"tiny-mixtral", "tiny-qwen2-moe", "tiny-qwen3-moe"}) {
    SCOPED_TRACE(name);
    const testing::Fixture fixture = testing::read_fixture(name);
    std::vector<TokenPrompt> all;
    for (const auto& sequence : fixture.sequences) {
      all.push_back({.prompt_index = static_cast<std::int32_t>(all.size()),
                     .tokens = {sequence.begin(), sequence.end()}});
    }
    RolloutOptions greedy = options();
    greedy.sampling.temperature = 0;
    greedy.max_response_tokens = 1;
    const auto tokens = static_cast<std::int64_t>(fixture.sequences.front().size());
    const torch::Tensor last =
        fixture.logits.view({static_cast<std::int64_t>(all.size()), tokens, -1}).select(1, -1);
    const torch::Tensor scores = last.log_softmax(-1);
    testing::on_ranks(
        fixture.spec, {.tp = 2, .dp = 2, .ep = 4, .etp = 1},
        [&](const ParallelLayout& layout, const ParallelGroups& groups) {
          const Weights weights = testing::loaded(fixture.spec, layout, groups, fixture.folder);
          const Rollout rollout =
              RolloutEngine(weights, groups)
                  .generate(5, prompts_of_replica(all, groups.dp_size, groups.dp_rank), greedy);
          for (const Sequence& s : rollout.sequences) {
            EXPECT_EQ(s.response.front(), last[s.prompt_index].argmax().item<std::int64_t>());
            EXPECT_NEAR(s.rollout_log_prob.front(),
                        scores[s.prompt_index][s.response.front()].item<float>(), 1e-5);
          }
        });
  }
}

TEST(Generate, LogProbsAreTrainingsAtTheTemperature) {
  const auto all = prompts(4, 2);
  RolloutOptions warm = options();
  warm.sampling = {.temperature = 0.7, .top_k = 20, .top_p = 0.9};
  const auto sequences = generated({}, all, warm);
  testing::on_ranks(spec(), {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const torch::NoGradGuard no_grad;
    const Weights weights = testing::loaded(spec(), layout, groups, {});
    EXPECT_LE(testing::largest_gap(weights, groups, sequences, 0.7), 1e-4);
  });
}

TEST(Generate, EveryLayoutSaysWhatOneRankSays) {
  const auto all = prompts(5, 3);
  RolloutOptions sampled = options();
  sampled.eos = {3, 11};
  const auto expected = generated({}, all, sampled);
  for (const Degrees degrees :
       {Degrees{.tp = 2}, Degrees{.dp = 2}, Degrees{.tp = 2, .dp = 2}, Degrees{.tp = 4}}) {
    SCOPED_TRACE(::testing::Message() << "tp" << degrees.tp << " dp" << degrees.dp);
    expect_same_text(generated(degrees, all, sampled), expected);
  }
}

TEST(Generate, FewSlotsSayWhatManySay) {
  const auto all = prompts(6, 3);
  RolloutOptions sampled = options();
  sampled.eos = {3, 11, 17, 20};
  const auto expected = generated({}, all, sampled);
  EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](auto& s) { return s.finished; }));
  EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](auto& s) { return !s.finished; }));
  for (const std::int64_t slots : {1, 4, 7}) {
    SCOPED_TRACE(slots);
    sampled.max_sequences = slots;
    expect_same_text(generated({}, all, sampled), expected);
  }
}

TEST(Generate, TheSameSeedGivesTheSameBits) {
  const auto all = prompts(4, 2);
  const auto first = generated({.tp = 2}, all, options());
  EXPECT_EQ(generated({.tp = 2}, all, options()), first);
  RolloutOptions other = options();
  other.seed = 8;
  EXPECT_NE(generated({.tp = 2}, all, other), first);
}

TEST(Generate, ReplicasWithoutPromptsReturnNothing) {
  const auto all = prompts(1, 2);
  expect_same_text(generated({.tp = 1, .dp = 3}, all, options()), generated({}, all, options()));
}

TEST(Generate, TheCacheTakesTheMemoryOfItsSlotsLongestTextsInWholePages) {
  const auto all = prompts(4, 2);
  RolloutOptions few = options();
  few.max_sequences = 3;
  few.max_response_tokens = 40;
  testing::on_ranks(
      spec(), {.tp = 2}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
        const Weights weights = testing::loaded(spec(), layout, groups, {});
        const Rollout rollout = RolloutEngine(weights, groups).generate(0, all, few);
        std::size_t longest = 0;
        for (const TokenPrompt& prompt : all) longest = std::max(longest, prompt.tokens.size());
        const auto texts = 3 * (static_cast<std::int64_t>(longest) + few.max_response_tokens);
        const std::int64_t page = 2 * spec().layers * 16 * spec().head_dim * 4;
        EXPECT_LE(rollout.kv_cache_bytes, (texts / 16 + 1) * page + 4096);
        EXPECT_GT(rollout.kv_cache_bytes, texts / 16 * page);
      });
}

TEST(Generate, AnEngineSaysTheSameAgainAndGrowsForLongerTexts) {
  testing::on_ranks(spec(), {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = testing::loaded(spec(), layout, groups, {});
    RolloutEngine engine(weights, groups);
    const auto small = prompts(2, 1), large = prompts(9, 3);
    RolloutOptions longer = options();
    longer.max_response_tokens = 200;
    const Rollout first = engine.generate(5, small, options());
    const Rollout grown = engine.generate(5, large, longer);
    EXPECT_GT(grown.kv_cache_bytes, first.kv_cache_bytes);
    expect_same_text(grown.sequences,
                     RolloutEngine(weights, groups).generate(5, large, longer).sequences);
    const Rollout again = engine.generate(5, small, options());
    expect_same_text(again.sequences, first.sequences);
    EXPECT_EQ(again.kv_cache_bytes, grown.kv_cache_bytes);  // the memory that is there already
    RolloutOptions greedy = options();
    greedy.sampling.temperature = 0;
    EXPECT_NE(engine.generate(5, small, greedy).sequences, first.sequences);
    expect_same_text(engine.generate(5, small, options()).sequences, first.sequences);
  });
}

}  // namespace
}  // namespace tessera
