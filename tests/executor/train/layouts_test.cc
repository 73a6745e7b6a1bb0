// Every training layout makes the gradients, the norm, the log-probs and the steps of one rank.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/context_parallel.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/trainer.h"
#include "tests/executor/train/layout_cases.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

constexpr double kTolerance = 1e-5;
constexpr int kSteps = 3;

using Case = LayoutCase;

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
                                         quadratic_loss(tokens, layout.dp, entropy),
                                         {.token_limit = c.token_limit,
                                          .temperature = 0.7,
                                          .entropy = entropy,
                                          .router_aux_loss_coef = c.balance,
                                          .router_z_loss_coef = c.z_loss,
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
  double of_all = 1e-5;
  for (const torch::Tensor& row : want) of_all = std::max(of_all, row.abs().max().item<double>());
  for (std::size_t row = 0; row < got.size(); ++row) {
    if (!got[row].defined()) continue;
    const Parameter& parameter = weights.table.rows[row];
    const torch::Tensor expected =
        slice_like(weights, static_cast<int>(row), want[row], std::max(parameter.split_dim, 0));
    // Rounding is of the summands' size: gradients of the keys' biases nearly cancel.
    const double largest = std::max(want[row].abs().max().item<double>(), 0.1 * of_all);
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
      for (const auto& [name, coefficient] :
           {std::pair{"router_aux_loss", c.balance}, {"router_z_loss", c.z_loss}}) {
        if (coefficient == 0) continue;
        const double of_routers = b.metrics.at(name);
        EXPECT_GT(of_routers, 0.1) << name;
        EXPECT_NEAR(a.metrics.at(name), of_routers,
                    (step == 0 ? 1e-6 : 1e-4) * std::max(1.0, of_routers))
            << name;
      }
    }
    EXPECT_NEAR(got.results[0].loss, want.results[0].loss,
                kTolerance * std::max(1.0, std::abs(want.results[0].loss)));
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

std::vector<Case> layouts_that_read_peers() {
  std::vector<Case> all = layouts();
  std::erase_if(all, [](const Case& c) {
    const bool shards = c.layout.dp_shard > 1 || (c.layout.zero > 0 && c.layout.dp > 1);
    return !shards && !c.layout.sequence_parallel;
  });
  for (Case& c : all) c.read_peers = true;
  return all;
}

INSTANTIATE_TEST_SUITE_P(ReadingPeers, LayoutOn, testing::ValuesIn(layouts_that_read_peers()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Layouts, LayoutOn, testing::ValuesIn(layouts()),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Experts, LayoutOn, testing::ValuesIn(expert_layouts()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Balanced, LayoutOn, testing::ValuesIn(balanced_layouts()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(ContextParallel, LayoutOn, testing::ValuesIn(context_layouts()),
                         [](const auto& info) { return info.param.name; });

/// The gradients of one optimizer step after each of the batches in turn, on one rank or many.
std::vector<torch::Tensor> accumulated(const Case& c, Communicator& world,
                                       const ParallelLayout& cut, std::span<const Tokens> batches,
                                       Weights* held) {
  const auto role = make_role(world, c.model, cut);
  TrainerOptions options{.sharding = {.reshard_after_forward = c.reshard_after_forward}};
  if (c.read_peers) options.sharding.host_group = shard_group(role->groups, cut);
  Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0}, options);
  trainer.optimizer().zero_gradients();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    trainer.accumulate(batches[i].sequences(), quadratic_loss(batches[i], cut.dp, false),
                       {.token_limit = 25, .last = i + 1 == batches.size()});
  }
  trainer.optimizer().step(0);
  if (held != nullptr) *held = role->weights;
  return trainer.optimizer().whole_gradients();
}

TEST_P(LayoutOn, AddsUpGradientsOfSeveralBatches) {
  const Case& c = GetParam();
  if (c.model.head != ModelHead::language_model) GTEST_SKIP() << "one head is enough";
  const std::vector<Tokens> batches{random_tokens(5, c.model.vocab, 3),
                                    random_tokens(4, c.model.vocab, 4)};
  std::vector<torch::Tensor> sum;
  run_ranks(1, [&](Communicator& world) {
    for (const Tokens& batch : batches) {
      auto one =
          accumulated({"alone", c.model}, world, layout_of(c.model, 1, 1, 1), {&batch, 1}, nullptr);
      if (sum.empty()) {
        sum = std::move(one);
      } else {
        for (std::size_t row = 0; row < sum.size(); ++row) sum[row] = sum[row] + one[row];
      }
    }
  });
  run_ranks(c.layout.ranks(), [&](Communicator& world) {
    Weights weights;
    const auto got = accumulated(c, world, c.layout, batches, &weights);
    expect_rows_equal(weights, got, sum, kTolerance, "gradient");
  });
}

TEST(ContextParallel, AgreesInBf16WithinItsRounding) {
  const ModelSpec model = qwen2();
  const Tokens tokens = random_tokens(9, model.vocab, 40);
  const auto update = [&](Communicator& world, const ParallelLayout& layout) {
    const auto role = make_role(world, model, layout, DType::bf16);
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    return trainer.update(tokens.sequences(), quadratic_loss(tokens, 1, true),
                          {.token_limit = 25, .temperature = 0.7, .entropy = true});
  };
  UpdateResult want;
  run_ranks(1, [&](Communicator& world) { want = update(world, layout(model, 1, 1, 1, 1, 0)); });
  for (const bool ulysses : {false, true}) {
    ParallelLayout cut = layout(model, 1, 1, 1, 1, 0);
    cut.cp = 2;
    cut.ulysses = ulysses;
    run_ranks(2, [&](Communicator& world) {
      const UpdateResult got = update(world, cut);
      EXPECT_NEAR(got.loss, want.loss, 1e-2 * std::max(1.0, std::abs(want.loss)));
      EXPECT_NEAR(got.grad_norm, want.grad_norm, 3e-2 * want.grad_norm);
    });
  }
}

TEST(ContextParallel, RefusesHeadsThatItCannotDealOut) {
  const ModelSpec model = llama();  // six query heads
  run_ranks(4, [&](Communicator& world) {
    ParallelLayout cut = layout(model, 1, 1, 1, 1, 0);
    cut.cp = 4;
    cut.ulysses = true;
    const auto role = make_role(world, model, cut);
    EXPECT_THROW(Trainer(role->weights, role->groups, std::nullopt), Error);
  });
}

struct Seen {
  std::vector<double> numbers;  // losses, norms, log-probs
  torch::Tensor weights;        // this rank's
  bool operator==(const Seen& other) const {
    return numbers == other.numbers && torch::equal(weights, other.weights);
  }
};

/// Three steps of several micro-batches, with phases of inference between them.
Seen trained_with(Communicator& world, const ModelSpec& model, const ParallelLayout& layout,
                  DType dtype, const AdamWOptions& adamw, const TrainerOptions& options) {
  const auto role = make_role(world, model, layout, dtype);
  Trainer trainer(role->weights, role->groups, adamw, options);
  const auto rest = [&] {
    trainer.rest();
    EXPECT_EQ(role->weights.storage.storage().data() == nullptr, options.offload_parameters);
    if (options.offload_parameters) {
      EXPECT_GT(trainer.resting_bytes(), 0);
    }
  };
  Seen seen;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const Tokens tokens = random_tokens(9, model.vocab, step);
    const auto batch = tokens.sequences();
    rest();
    for (const auto& values : trainer.log_probs(batch, {.token_limit = 25}).log_prob)
      seen.numbers.insert(seen.numbers.end(), values.begin(), values.end());
    rest();
    trainer.wake(/*training=*/true);
    trainer.optimizer().zero_gradients();
    seen.numbers.push_back(trainer
                               .accumulate(batch, quadratic_loss(tokens, layout.dp, true),
                                           {.token_limit = 25, .entropy = true})
                               .loss);
    rest();  // gradients of half a step are away, too
    trainer.wake(/*training=*/true);
    seen.numbers.push_back(trainer.optimizer().step(1e-3).grad_norm);
  }
  trainer.with_whole_weights([&] {
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& tensor : role->weights.tensors) {
      if (tensor.defined()) parts.push_back(tensor.detach().reshape({-1}).to(torch::kFloat32));
    }
    seen.weights = torch::cat(parts);
  });
  return seen;
}

TEST(Offload, ChangesNoBitInAnyLayout) {
  const ModelSpec model = qwen2();
  ParallelLayout ring = layout(model, 1, 1, 1, 1, 1);
  ring.cp = 2;
  for (const ParallelLayout& cut :
       {layout(model, 1, 1, 1, 1, 0), layout(model, 2, 2, 1, 1, 0), layout(model, 1, 1, 2, 1, 1),
        layout(model, 1, 1, 2, 1, 2), layout(model, 1, 2, 1, 2, 3), ring}) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      SCOPED_TRACE(describe(cut) + " zero " + std::to_string(cut.zero));
      run_ranks(cut.ranks(), [&](Communicator& world) {
        const Seen want = trained_with(world, model, cut, dtype, {}, {});
        const AdamWOptions on_host{.offload = true, .piece_elements = 192};
        const TrainerOptions away{.offload_parameters = true, .offload_gradients = true};
        EXPECT_TRUE(want == trained_with(world, model, cut, dtype, on_host, {}));
        EXPECT_TRUE(want == trained_with(world, model, cut, dtype, {}, away));
        EXPECT_TRUE(want == trained_with(world, model, cut, dtype, on_host, away));
      });
    }
  }
}

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
