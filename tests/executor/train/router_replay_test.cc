// Experts that are noted and replayed by the trainer: every layout does what one rank does, and
// what is replayed is what was noted, whatever the routers have become.
#include "executor/train/router_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "executor/comm/thread_communicator.h"
#include "executor/train/trainer.h"
#include "tests/executor/train/layout_cases.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

using Routes = std::vector<std::vector<std::int16_t>>;

std::int64_t routed_layers_of(const ModelSpec& model) {
  return model.layers - static_cast<std::int64_t>(model.moe->dense_layers.size());
}

/// Drawn experts of the first tokens of every sequence, of all but `missing`.
Routes drawn_routes(const ModelSpec& model, const Tokens& tokens, std::int64_t missing) {
  std::mt19937 random(5);
  std::vector<std::int16_t> experts(static_cast<std::size_t>(model.moe->experts));
  std::iota(experts.begin(), experts.end(), std::int16_t{0});
  Routes routes;
  for (const TokenSequence& sequence : tokens.sequences()) {
    auto& own = routes.emplace_back();
    const std::int64_t choices = (sequence.tokens() - missing) * routed_layers_of(model);
    for (std::int64_t i = 0; i < choices; ++i) {
      std::shuffle(experts.begin(), experts.end(), random);
      own.insert(own.end(), experts.begin(), experts.begin() + model.moe->experts_per_token);
    }
  }
  return routes;
}

std::vector<TokenSequence> with_routes(const Tokens& tokens, const Routes& routes) {
  std::vector<TokenSequence> batch = tokens.sequences();
  for (std::size_t s = 0; s < batch.size(); ++s) batch[s].routed_experts = routes[s];
  return batch;
}

/// Every choice's experts in order, for a comparison of sets.
Routes in_order(Routes routes, std::int64_t k) {
  for (auto& own : routes) {
    for (auto at = own.begin(); at != own.end(); at += k) std::sort(at, at + k);
  }
  return routes;
}

struct ReplayRun {
  UpdateResult update;
  std::vector<torch::Tensor> gradients;
  LogProbs own, replayed;  // before the update
};

ReplayRun replay_run(Communicator& world, const LayoutCase& c, const Tokens& tokens,
                     const Routes& routes, Weights* held) {
  const auto role = make_role(world, c.model, c.layout);
  Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0},
                  {.recompute = c.recompute});
  const std::vector<TokenSequence> batch = with_routes(tokens, routes);
  const InferOptions notes{.token_limit = c.token_limit, .note_experts = true};
  ReplayRun out;
  out.own = trainer.log_probs(tokens.sequences(), notes);
  out.replayed = trainer.log_probs(batch, notes);
  out.update =
      trainer.update(batch, quadratic_loss(tokens, c.layout.dp, false),
                     {.token_limit = c.token_limit, .router_z_loss_coef = 0.1, .learning_rate = 0});
  out.gradients = trainer.optimizer().whole_gradients();
  if (held != nullptr) *held = role->weights;
  return out;
}

void expect_values_near(const TokenValues& got, const TokenValues& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t s = 0; s < want.size(); ++s) {
    ASSERT_EQ(got[s].size(), want[s].size());
    for (std::size_t t = 0; t < want[s].size(); ++t) EXPECT_NEAR(got[s][t], want[s][t], 1e-5);
  }
}

constexpr const char* kReplayLayouts[] = {"Qwen2MoeFsdp3",         "Qwen2MoeTp2",
                                          "Qwen2MoeEp2Tp2Etp2Dp2", "Qwen3MoeEp2Tp2SequenceDp2",
                                          "Qwen2MoeEp2Pp2Dp2",     "Qwen3MoeEp2Pp2Virtual2",
                                          "Qwen3MoeEp2Fsdp2Pp2",   "Qwen2MoeTp2SequenceEtp2Ep2",
                                          "Qwen3MoeCp2Ep2",        "Qwen3MoeEp2Tp4Etp2"};

TEST(RouterReplay, EveryLayoutReplaysAndNotesAsOneRankDoes) {
  int cases = 0;
  for (const LayoutCase& c : expert_layouts()) {
    if (std::find(std::begin(kReplayLayouts), std::end(kReplayLayouts), c.name) ==
        std::end(kReplayLayouts))
      continue;
    SCOPED_TRACE(c.name);
    ++cases;
    const std::int64_t k = c.model.moe->experts_per_token;
    const Tokens tokens = random_tokens(9, c.model.vocab, 40);
    const Routes routes = drawn_routes(c.model, tokens, /*missing=*/1);
    ReplayRun want;
    run_ranks(1, [&](Communicator& world) {
      LayoutCase alone{.name = "alone", .model = c.model, .layout = layout_of(c.model, 1, 1, 1)};
      alone.token_limit = c.token_limit;
      want = replay_run(world, alone, tokens, routes, nullptr);
    });
    EXPECT_GT(want.update.metrics.at("router_replay_mismatch_fraction"), 0.5);
    run_ranks(c.layout.ranks(), [&](Communicator& world) {
      Weights weights;
      const ReplayRun got = replay_run(world, c, tokens, routes, &weights);
      expect_values_near(got.own.log_prob, want.own.log_prob);
      expect_values_near(got.replayed.log_prob, want.replayed.log_prob);
      EXPECT_EQ(in_order(got.own.routed_experts, k), in_order(want.own.routed_experts, k));
      EXPECT_EQ(in_order(got.replayed.routed_experts, k),
                in_order(want.replayed.routed_experts, k));
      EXPECT_NEAR(got.update.loss, want.update.loss, 1e-5 * std::max(1.0, want.update.loss));
      EXPECT_NEAR(got.update.metrics.at("router_replay_mismatch_fraction"),
                  want.update.metrics.at("router_replay_mismatch_fraction"), 1e-12);
      for (std::size_t row = 0; row < got.gradients.size(); ++row) {
        if (!got.gradients[row].defined()) continue;
        const Parameter& parameter = weights.table.rows[row];
        const torch::Tensor expected = slice_like(
            weights, static_cast<int>(row), want.gradients[row], std::max(parameter.split_dim, 0));
        const double largest = std::max(1e-2, expected.abs().max().item<double>());
        EXPECT_LE((got.gradients[row] - expected).abs().max().item<double>(), 1e-5 * largest)
            << parameter.name;
      }
    });
  }
  EXPECT_EQ(cases, static_cast<int>(std::size(kReplayLayouts)));
}

/// What R2 does, when the routers have moved between the old policy's pass and the update.
TEST(RouterReplay, KeepsTheNotedExpertsWhenTheRoutersChange) {
  const ModelSpec model = qwen2_moe();
  const std::int64_t k = model.moe->experts_per_token;
  const Tokens tokens = random_tokens(5, model.vocab, 11);
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    const auto update = [&](const std::vector<TokenSequence>& batch) {
      return trainer.update(batch, quadratic_loss(tokens, 1, false), {.learning_rate = 0});
    };
    const LogProbs before = trainer.log_probs(tokens.sequences(), {.note_experts = true});
    const std::vector<TokenSequence> batch = with_routes(tokens, before.routed_experts);
    const UpdateResult same = update(batch), none = update(tokens.sequences());
    EXPECT_EQ(same.metrics.at("router_replay_mismatch_fraction"), 0);
    EXPECT_EQ(same.loss, none.loss);
    EXPECT_FALSE(none.metrics.contains("router_replay_mismatch_fraction"));
    trainer.with_whole_weights([&] {
      for (const LayerRows& rows : role->weights.rows.layers) {
        if (rows.routed()) role->weights.tensor(rows.router).detach().mul_(-1);
      }
    });
    const LogProbs native = trainer.log_probs(tokens.sequences(), {.note_experts = true});
    const LogProbs replayed = trainer.log_probs(batch, {.note_experts = true});
    EXPECT_NE(in_order(native.routed_experts, k), in_order(before.routed_experts, k));
    EXPECT_EQ(replayed.routed_experts, before.routed_experts);
    EXPECT_NE(replayed.log_prob, native.log_prob);
    EXPECT_GT(update(batch).metrics.at("router_replay_mismatch_fraction"), 0.5);
  });
}

/// Other experts in the last layer change no router's input: they are counted one by one.
TEST(RouterReplay, TheMismatchIsTheShareOfChoicesThatDiffer) {
  const ModelSpec model = qwen3_moe();
  const auto k = static_cast<std::size_t>(model.moe->experts_per_token);
  const auto layers = static_cast<std::size_t>(routed_layers_of(model));
  const Tokens tokens = random_tokens(5, model.vocab, 12);
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    Routes routes = trainer.log_probs(tokens.sequences(), {.note_experts = true}).routed_experts;
    double changed = 0, all = 0;
    for (auto& own : routes) {
      for (std::size_t token = 0; token * layers * k < own.size(); ++token) {
        all += static_cast<double>(layers);
        const auto last = own.begin() + static_cast<std::ptrdiff_t>(((token + 1) * layers - 1) * k);
        if (token % 3 == 0) {
          std::swap(*last, *(last + 1));  // the same set
        } else if (token % 3 == 1) {
          const auto experts = static_cast<std::int16_t>(model.moe->experts);
          do *last = static_cast<std::int16_t>((*last + 1) % experts);
          while (*last == *(last + 1));
          changed += 1;
        }
      }
    }
    const UpdateResult result =
        trainer.update(with_routes(tokens, routes), quadratic_loss(tokens, 1, false),
                       {.token_limit = 20, .learning_rate = 0});
    EXPECT_DOUBLE_EQ(result.metrics.at("router_replay_mismatch_fraction"), changed / all);
  });
}

}  // namespace
}  // namespace tessera
