// Every training layout makes the gradients, the norm, the log-probs and the steps of one rank.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "executor/comm/thread_communicator.h"
#include "executor/train/trainer.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

constexpr double kTolerance = 1e-5;
constexpr int kSteps = 3;

struct Case {
  std::string name;
  ModelSpec model;
  ParallelLayout layout;
  std::int64_t token_limit = 0;
  Recompute recompute = Recompute::none;
  bool reshard_after_forward = true;
  bool offload = false;
  int sequences = 9;
  bool read_peers = false;  // instead of collectives over those who share parameters or gradients

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

struct Trained {
  std::vector<UpdateResult> results;
  std::vector<torch::Tensor> first_gradients, weights;  // whole rows that the rank holds
  LogProbs log_probs;
};

Trained train(const Case& c, Communicator& world, const ParallelLayout& layout, Weights* held) {
  const auto role = make_role(world, c.model, layout);
  const bool alone = layout.ranks() == 1;
  TrainerOptions options{.recompute = alone ? Recompute::none : c.recompute,
                         .sharding = {.reshard_after_forward = c.reshard_after_forward}};
  if (c.read_peers && !alone) {
    options.sharding.host_group = shard_group(role->groups, layout);
    options.tensor_host = role->groups.tp.get();
  }
  Trainer trainer(role->weights, role->groups,
                  AdamWOptions{.eps = 1e-4, .clip_norm = 0.5, .offload = !alone && c.offload},
                  options);
  Trained out;
  const bool entropy = c.model.head == ModelHead::language_model;
  for (int step = 0; step < kSteps; ++step) {
    const Tokens tokens =
        random_tokens(c.sequences, c.model.vocab, 40 + static_cast<std::uint32_t>(step));
    out.results.push_back(trainer.update(tokens.sequences(),
                                         quadratic_loss(tokens, layout.dp(), entropy),
                                         {.token_limit = c.token_limit,
                                          .temperature = 0.7,
                                          .entropy = entropy,
                                          .learning_rate = 1e-3}));
    if (step == 0) out.first_gradients = trainer.optimizer().whole_gradients();
  }
  const Tokens last = random_tokens(c.sequences, c.model.vocab, 77);
  if (entropy) {
    out.log_probs = trainer.log_probs(
        last.sequences(), {.token_limit = c.token_limit, .temperature = 0.7, .entropy = true});
  }
  trainer.with_whole_weights([&] {
    for (const torch::Tensor& tensor : role->weights.tensors) {
      out.weights.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
    }
  });
  if (held != nullptr) *held = role->weights;
  return out;
}

void expect_rows_equal(const Weights& weights, const std::vector<torch::Tensor>& got,
                       const std::vector<torch::Tensor>& want, double tolerance, const char* what) {
  for (std::size_t row = 0; row < got.size(); ++row) {
    if (!got[row].defined()) continue;
    const Parameter& parameter = weights.table.rows[row];
    const torch::Tensor expected =
        slice_like(weights, static_cast<int>(row), want[row], std::max(parameter.split_dim, 0));
    const double largest = std::max(want[row].abs().max().item<double>(), 1e-6);
    EXPECT_LE((got[row] - expected).abs().max().item<double>(), tolerance * largest)
        << what << " of " << parameter.name;
  }
}

class LayoutOn : public testing::TestWithParam<Case> {};

TEST_P(LayoutOn, TrainsAsOneRankDoes) {
  const Case& c = GetParam();
  Trained want;
  run_ranks(1, [&](Communicator& world) {
    want = train(c, world, layout_of(c.model, 1, 1, 1), nullptr);
  });
  EXPECT_GT(want.results[0].grad_norm, 0.5);  // clipping acts
  run_ranks(c.layout.ranks(), [&](Communicator& world) {
    Weights weights;
    const Trained got = train(c, world, c.layout, &weights);
    for (int step = 0; step < kSteps; ++step) {
      const UpdateResult &a = got.results[static_cast<std::size_t>(step)],
                         &b = want.results[static_cast<std::size_t>(step)];
      EXPECT_NEAR(a.loss, b.loss, 1e-4 * std::max(1.0, std::abs(b.loss)));
      EXPECT_NEAR(a.grad_norm, b.grad_norm, 1e-4 * std::max(1.0, b.grad_norm));
    }
    EXPECT_NEAR(got.results[0].grad_norm, want.results[0].grad_norm,
                kTolerance * std::max(1.0, want.results[0].grad_norm));
    expect_rows_equal(weights, got.first_gradients, want.first_gradients, kTolerance, "gradient");
    expect_rows_equal(weights, got.weights, want.weights, 2e-4, "weights");
    for (std::size_t s = 0; s < want.log_probs.log_prob.size(); ++s) {
      for (std::size_t t = 0; t < want.log_probs.log_prob[s].size(); ++t) {
        EXPECT_NEAR(got.log_probs.log_prob[s][t], want.log_probs.log_prob[s][t], 2e-3);
      }
    }
  });
}

ParallelLayout layout(const ModelSpec& model, int tp, int pp, int replicate, int shard, int zero,
                      bool sequence = false, int vpp = 1) {
  return {.tp = tp,
          .pp = pp,
          .vpp = vpp,
          .dp_replicate = replicate,
          .dp_shard = shard,
          .zero = zero,
          .sequence_parallel = sequence,
          .stages = even_stages(model.layers, pp, vpp)};
}

std::vector<Case> layouts() {
  std::vector<Case> all;
  for (const auto& [name, m] : {std::pair{std::string("Qwen2"), qwen2()}, {"Llama", llama()}}) {
    all.push_back({name + "Zero2", m, layout(m, 1, 1, 2, 1, 2), 25});
    all.push_back({name + "Fsdp2", m, layout(m, 1, 1, 1, 2, 3), 25});
    all.push_back({name + "Fsdp3", m, layout(m, 1, 1, 1, 3, 3)});
    all.push_back({name + "Hsdp2x2", m, layout(m, 1, 1, 2, 2, 3), 25});
    all.push_back({name + "Tp2Fsdp2", m, layout(m, 2, 1, 1, 2, 3), 30});
    all.push_back({name + "Tp2Sequence", m, layout(m, 2, 1, 1, 1, 0, true), 30});
    all.push_back({name + "Tp2SequenceFsdp2", m, layout(m, 2, 1, 1, 2, 3, true), 30});
    all.push_back({name + "Pp2Virtual2", m, layout(m, 1, 2, 1, 1, 0, false, 2), 12});
    all.push_back({name + "Pp2Zero2", m, layout(m, 1, 2, 2, 1, 2), 25});
  }
  const ModelSpec m = qwen2(), q3 = qwen3(), value = critic();
  all.push_back({"Tp4Sequence", m, layout(m, 4, 1, 1, 1, 0, true)});
  all.push_back({"Qwen3Tp2SequencePp2", q3, layout(q3, 2, 2, 1, 1, 1, true), 30});
  all.push_back({"Tp2SequenceZero2", m, layout(m, 2, 1, 2, 1, 2, true), 25});
  all.push_back({"Pp2Fsdp2", m, layout(m, 1, 2, 1, 2, 3), 25});
  all.push_back({"Pp2Virtual2Fsdp2Sequence", m, layout(m, 1, 2, 1, 2, 3, false, 2), 20});
  all.push_back({"Tp2Pp2Virtual2Sequence", m, layout(m, 2, 2, 1, 1, 0, true, 2), 20});
  all.push_back({"FsdpWithoutReshard", m, layout(m, 1, 1, 1, 2, 3), 25, Recompute::none, false});
  all.push_back({"FullRecompute", m, layout(m, 2, 1, 1, 1, 0), 25, Recompute::full});
  all.push_back({"SelectiveRecompute", m, layout(m, 2, 1, 1, 1, 0), 25, Recompute::selective});
  all.push_back({"FsdpFullRecompute", m, layout(m, 1, 1, 1, 2, 3), 25, Recompute::full});
  all.push_back(
      {"SequencePp2FullRecompute", m, layout(m, 2, 2, 1, 1, 0, true), 25, Recompute::full});
  all.push_back({"FsdpOffload", m, layout(m, 1, 1, 1, 2, 3), 25, Recompute::none, true, true});
  all.push_back({"Zero1Offload", m, layout(m, 1, 1, 2, 1, 1), 25, Recompute::none, true, true});
  all.push_back({"CriticFsdp2Tp2Sequence", value, layout(value, 2, 1, 1, 2, 3, true), 30});
  all.push_back({"FewerSequencesThanShards", m, layout(m, 1, 1, 1, 3, 3), 0, Recompute::none, true,
                 false, 2});
  return all;
}

std::vector<Case> layouts_that_read_peers() {
  std::vector<Case> all = layouts();
  std::erase_if(all, [](const Case& c) {
    const bool shards = c.layout.dp_shard > 1 || (c.layout.zero > 0 && c.layout.dp() > 1);
    return !shards && !c.layout.sequence_parallel;
  });
  for (Case& c : all) c.read_peers = true;
  return all;
}

INSTANTIATE_TEST_SUITE_P(ReadingPeers, LayoutOn, testing::ValuesIn(layouts_that_read_peers()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Layouts, LayoutOn, testing::ValuesIn(layouts()),
                         [](const auto& info) { return info.param.name; });

TEST(Sharding, HoldsOnlyItsPartBetweenSteps) {
  const ModelSpec model = qwen2();
  run_ranks(2, [&](Communicator& world) {
    const ParallelLayout sharded = layout(model, 1, 1, 1, 2, 3);
    const auto role = make_role(world, model, sharded);
    const std::int64_t whole = role->weights.storage.numel();
    Trainer trainer(role->weights, role->groups, AdamWOptions{});
    const Tokens tokens = random_tokens(4, model.vocab, 5);
    trainer.update(tokens.sequences(), quadratic_loss(tokens, 2, false), {.learning_rate = 1e-3});
    EXPECT_LT(role->weights.storage.numel(), whole * 6 / 10);
    for (const torch::Tensor& tensor : role->weights.tensors) {
      EXPECT_EQ(tensor.storage().data(), nullptr);
    }
    EXPECT_LT(trainer.optimizer().state().count, whole * 6 / 10);
  });
}

}  // namespace
}  // namespace tessera
