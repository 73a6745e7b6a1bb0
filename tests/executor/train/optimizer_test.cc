#include "executor/train/optimizer.h"

#include <gtest/gtest.h>
#include <algorithm>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "executor/comm/thread_communicator.h"
#include "executor/model/decoder.h"
#include "executor/model/scores.h"
#include "executor/train/packing.h"
#include "executor/train/trainer.h"
#include "executor/weights/placed_weights.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

constexpr int kSteps = 5;
constexpr AdamWOptions kOptions{
    .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-5, .weight_decay = 0.1, .clip_norm = 0.5};

double rate(int step) { return 1e-3 * (step + 1); }

Tokens batch_of(const ModelSpec& model, int step) {
  return random_tokens(6, model.vocab, 100 + static_cast<std::uint32_t>(step));
}

/// Whole weights by row after kSteps of torch's own clip_grad_norm_ and AdamW on one rank.
struct TorchRun {
  std::vector<torch::Tensor> weights;
  std::vector<int> outer_dims;
  std::vector<double> norms;
};

TorchRun torch_run(const ModelSpec& model) {
  TorchRun run;
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    std::vector<torch::Tensor> decayed, plain, all;
    for (std::size_t row = 0; row < role->weights.tensors.size(); ++row) {
      torch::Tensor& tensor = role->weights.tensors[row];
      tensor.requires_grad_(true);
      (role->weights.table.rows[row].decayed ? decayed : plain).push_back(tensor);
      all.push_back(tensor);
    }
    const auto options = [](double decay) {
      return std::make_unique<torch::optim::AdamWOptions>(
          torch::optim::AdamWOptions()
              .betas({kOptions.beta1, kOptions.beta2})
              .eps(kOptions.eps)
              .weight_decay(decay));
    };
    torch::optim::AdamW adamw({torch::optim::OptimizerParamGroup(decayed, options(0.1)),
                               torch::optim::OptimizerParamGroup(plain, options(0.0))});
    for (int step = 0; step < kSteps; ++step) {
      adamw.zero_grad();
      const Tokens tokens = batch_of(model, step);
      std::vector<int> sequences{0, 1, 2, 3, 4, 5};
      const auto packed = pack_micro_batch(tokens.sequences(), sequences, torch::kCPU);
      const torch::Tensor hidden = stage_forward(role->weights, role->groups, packed.tokens);
      const torch::Tensor scores =
          score_tokens(role->weights, role->groups, hidden.index_select(0, packed.rows),
                       packed.targets, {.entropy = false})
              .log_prob;
      const torch::Tensor host = scores.detach().to(torch::kFloat64);
      const LossGradient loss = quadratic_loss(tokens, 1, false)(
          sequences, {host.const_data_ptr<double>(), static_cast<std::size_t>(host.numel())}, {});
      scores.backward(torch::tensor(at::ArrayRef<double>(loss.score_gradient), torch::kFloat32));
      run.norms.push_back(torch::nn::utils::clip_grad_norm_(all, kOptions.clip_norm));
      for (auto& group : adamw.param_groups()) group.options().set_lr(rate(step));
      adamw.step();
    }
    for (const torch::Tensor& tensor : all) run.weights.push_back(tensor.detach().clone());
    for (const ArenaSlot& slot : role->weights.arena.slots)
      run.outer_dims.push_back(slot.outer_dim);
  });
  return run;
}

struct Case {
  std::string name;
  ModelSpec model;
  int tp, pp, dp, zero;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class OptimizerOn : public testing::TestWithParam<Case> {};

TEST_P(OptimizerOn, UpdatesAsTorchsAdamWWithClippingDoesOnOneRank) {
  const Case& c = GetParam();
  const TorchRun expected = torch_run(c.model);
  EXPECT_GT(expected.norms[0], kOptions.clip_norm);  // clipping acts
  const ParallelLayout layout = layout_of(c.model, c.tp, c.pp, c.dp, c.zero);
  run_ranks(layout.ranks(), [&](Communicator& world) {
    const auto role = make_role(world, c.model, layout);
    Trainer trainer(role->weights, role->groups, kOptions);
    for (int step = 0; step < kSteps; ++step) {
      const Tokens tokens = batch_of(c.model, step);
      const UpdateResult result =
          trainer.update(tokens.sequences(), quadratic_loss(tokens, c.dp, false),
                         {.token_limit = 30, .learning_rate = rate(step)});
      EXPECT_TRUE(result.applied);
      EXPECT_NEAR(result.grad_norm, expected.norms[static_cast<std::size_t>(step)],
                  1e-4 * expected.norms[static_cast<std::size_t>(step)]);
    }
    EXPECT_EQ(trainer.optimizer().state().steps, kSteps);
    const std::int64_t parts = c.zero == 1 ? c.dp : 1;
    // Each bucket's part is rounded up, to 64 elements.
    const auto buckets = static_cast<std::int64_t>(trainer.optimizer().map().buckets.size());
    EXPECT_LE(trainer.optimizer().state().count,
              role->weights.storage.numel() / parts + (parts > 1 ? 192 * buckets : 0));
    for (std::size_t row = 0; row < role->weights.tensors.size(); ++row) {
      if (!role->weights.holds(static_cast<int>(row))) continue;
      const torch::Tensor slice = slice_like(role->weights, static_cast<int>(row),
                                             expected.weights[row], expected.outer_dims[row]);
      const std::string& name = role->weights.table.rows[row].name;
      // AdamW divides by each gradient's own size, so that rounding in tiny gradients is not tiny
      // beside a bias, which starts from zero and consists of updates only.
      const double tolerance = name.ends_with("k_proj.bias") ? 5e-4  // softmax nearly cancels it
                               : name.ends_with("bias")      ? 1e-4
                                                             : 1e-5;
      EXPECT_LE(relative_error(role->weights.tensors[row].detach(), slice), tolerance) << name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, OptimizerOn,
                         testing::Values(Case{"One", qwen2(), 1, 1, 1, 0},
                                         Case{"Dp2", qwen2(), 1, 1, 2, 0},
                                         Case{"Dp2Zero1", qwen2(), 1, 1, 2, 1},
                                         Case{"Dp3Zero1", llama(), 1, 1, 3, 1},
                                         Case{"Tp2Dp2Zero1", llama(), 2, 1, 2, 1},
                                         Case{"Pp2Dp2Zero1Tied", qwen2(), 1, 2, 2, 1},
                                         Case{"Tp4SharedKvHeads", qwen2(), 4, 1, 1, 0},
                                         Case{"Tp2Pp2Tied", qwen2(), 2, 2, 1, 0}),
                         [](const auto& info) { return info.param.name; });

TEST(Optimizer, AccumulatesBf16GradientsInFp32AndKeepsAnFp32Master) {
  const ModelSpec model = qwen2();
  const Tokens tokens = random_tokens(6, model.vocab, 21);
  std::vector<torch::Tensor> exact;
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1));
    Trainer trainer(role->weights, role->groups, AdamWOptions{.clip_norm = 0});
    trainer.accumulate(tokens.sequences(), quadratic_loss(tokens, 1, false), {.token_limit = 20});
    for (const auto& gradient : trainer.optimizer().gradients()) exact.push_back(gradient.clone());
  });
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, layout_of(model, 1, 1, 1), DType::bf16);
    Trainer trainer(role->weights, role->groups, AdamWOptions{.weight_decay = 0, .clip_norm = 0});
    const OptimizerState& state = trainer.optimizer().state();
    const torch::Tensor before = state.master.clone();
    EXPECT_TRUE(torch::equal(before, role->weights.storage.to(torch::kFloat32)));
    trainer.accumulate(tokens.sequences(), quadratic_loss(tokens, 1, false), {.token_limit = 20});
    for (std::size_t row = 0; row < exact.size(); ++row) {
      const torch::Tensor& gradient = trainer.optimizer().gradients()[row];
      EXPECT_EQ(gradient.scalar_type(), torch::kFloat32);
      EXPECT_EQ(role->weights.tensors[row].grad().const_data_ptr(), gradient.const_data_ptr());
      EXPECT_LE(relative_error(gradient, exact[row]), 0.06) << role->weights.table.rows[row].name;
    }
    // Steps far below bf16's resolution of the weights add up in the master.
    for (int step = 0; step < 50; ++step) trainer.optimizer().step(1e-6);
    EXPECT_NEAR((state.master - before).abs().max().item<double>(), 5e-5, 1e-6);
    EXPECT_TRUE(torch::equal(role->weights.storage, state.master.to(torch::kBFloat16)));
  });
}

/// A reshard that begins when a row is named never ships a stale weight.
TEST(Optimizer, RowsAreNamedOnceAndOnlyWhenTheyAreFinal) {
  const ModelSpec model = qwen2();
  for (const int zero : {0, 1, 2}) {
    SCOPED_TRACE("zero " + std::to_string(zero));
    run_ranks(4, [&](Communicator& world) {
      const auto role = make_role(world, model, layout_of(model, 2, 1, 2, zero), DType::bf16);
      Trainer trainer(role->weights, role->groups, kOptions);
      for (int step = 0; step < 2; ++step) {
        const Tokens tokens = batch_of(model, step);
        const std::vector<torch::Tensor>& weights = role->weights.tensors;
        std::vector<torch::Tensor> before, seen(weights.size());
        std::vector<std::int64_t> layers;  // of the rows, as they were named
        for (const torch::Tensor& tensor : weights) before.push_back(tensor.detach().clone());
        UpdateOptions options{.learning_rate = 1e-2};
        options.written = [&](std::span<const int> rows) {
          for (const int row : rows) {
            const auto index = static_cast<std::size_t>(row);
            EXPECT_FALSE(seen[index].defined()) << "row " << row << " twice";
            seen[index] = weights[index].detach().clone();
            layers.push_back(role->weights.table.rows[index].layer);
          }
        };
        trainer.update(tokens.sequences(), quadratic_loss(tokens, 2, false), options);
        bool changed = false;
        for (std::size_t row = 0; row < weights.size(); ++row) {
          ASSERT_TRUE(seen[row].defined()) << "row " << row;
          EXPECT_TRUE(torch::equal(seen[row], weights[row])) << "row " << row;
          changed = changed || !torch::equal(before[row], weights[row]);
        }
        EXPECT_TRUE(changed);
        EXPECT_TRUE(std::is_sorted(layers.begin(), layers.end()));  // as update_order() says
      }
    });
  }
}

/// The role's weights in memory of a rollout, say: rows in another order, odd gaps between them.
void scatter(Weights& weights) {
  ArenaLayout places = weights.arena;
  places.bytes = 3 * places.element_bytes;
  for (auto slot = places.slots.rbegin(); slot != places.slots.rend(); ++slot) {
    slot->range.offset = places.bytes;
    places.bytes += slot->range.bytes + 5 * places.element_bytes;
  }
  const torch::Tensor memory =
      torch::full({places.bytes / places.element_bytes}, 7, weights.storage.options());
  Weights scattered = make_placed_weights(weights.table, weights.layout, weights.coord,
                                          weights.dtype, torch::kCPU, memory, places);
  for (std::size_t row = 0; row < weights.tensors.size(); ++row)
    if (weights.tensors[row].defined()) scattered.tensors[row].copy_(weights.tensors[row]);
  weights = std::move(scattered);
}

/// Elements of the memory that no row holds.
std::int64_t untouched(const Weights& weights) {
  torch::Tensor outside = torch::ones(weights.storage.sizes(), torch::kBool);
  for (const torch::Tensor& tensor : weights.tensors)
    if (tensor.defined()) outside.narrow(0, tensor.storage_offset(), tensor.numel()).fill_(false);
  return (weights.storage.detach() == 7).logical_and_(outside).sum().item<std::int64_t>();
}

TEST(Optimizer, UpdatesWeightsWhereverTheyLieBitForBit) {
  const ModelSpec model = qwen2();
  for (const int zero : {0, 1}) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      for (const bool offload : {false, true}) {
        SCOPED_TRACE("zero " + std::to_string(zero) + (dtype == DType::fp32 ? " fp32" : " bf16") +
                     (offload ? " on the host" : ""));
        run_ranks(2, [&](Communicator& world) {
          const auto dense = make_role(world, model, layout_of(model, 1, 1, 2, zero), dtype);
          const auto spread = make_role(world, model, layout_of(model, 1, 1, 2, zero), dtype);
          scatter(spread->weights);
          const std::int64_t gaps = untouched(spread->weights);
          EXPECT_EQ(gaps, 3 + 5 * static_cast<std::int64_t>(spread->weights.arena.slots.size()));
          AdamWOptions options = kOptions;
          options.offload = offload;
          options.piece_elements = 192;
          Trainer want(dense->weights, dense->groups, options);
          Trainer got(spread->weights, spread->groups, options);
          const auto train = [&](Trainer& trainer, int step) {
            const Tokens tokens = batch_of(model, step);
            return trainer
                .update(tokens.sequences(), quadratic_loss(tokens, 2, false),
                        {.token_limit = 30, .learning_rate = rate(step)})
                .grad_norm;
          };
          const auto expect_equal = [&] {
            for (std::size_t row = 0; row < dense->weights.tensors.size(); ++row) {
              EXPECT_TRUE(torch::equal(spread->weights.tensors[row], dense->weights.tensors[row]))
                  << dense->weights.table.rows[row].name;
            }
            EXPECT_EQ(untouched(spread->weights), gaps);
          };
          OptimizerState first;
          for (int step = 0; step < 3; ++step) {
            EXPECT_EQ(train(got, step), train(want, step));
            expect_equal();
            if (step > 0) continue;
            first = want.optimizer().state();
            for (torch::Tensor* tensor : {&first.master, &first.exp_avg, &first.exp_avg_sq})
              *tensor = tensor->clone();
          }
          // fp32 weights that are their own master weights need others beside a view.
          const bool master_apart = zero == 0 && dtype == DType::fp32 && !offload;
          EXPECT_EQ(got.optimizer().bytes() - want.optimizer().bytes(),
                    master_apart ? 4 * first.count : 0);
          want.optimizer().load_state(first);
          got.optimizer().load_state(first);
          expect_equal();
          EXPECT_EQ(train(got, 1), train(want, 1));
          expect_equal();
        });
      }
    }
  }
}

TEST(Optimizer, SkipsAStepWhoseNormIsNotFinite) {
  run_ranks(2, [&](Communicator& world) {
    const ModelSpec model = qwen2();
    const auto role = make_role(world, model, layout_of(model, 1, 1, 2, 1));
    Optimizer optimizer(role->weights, role->groups, AdamWOptions{});
    const torch::Tensor before = role->weights.storage.detach().clone();
    if (world.rank() == 1)
      optimizer.gradients()[0].view(-1)[3] = std::numeric_limits<float>::infinity();
    const StepResult result = optimizer.step(1e-2);
    EXPECT_FALSE(result.applied);
    EXPECT_EQ(optimizer.state().steps, 0);
    EXPECT_TRUE(torch::equal(role->weights.storage, before));
  });
}

TEST(Optimizer, ContinuesFromASavedStateAsIfItHadNotStopped) {
  const ModelSpec model = qwen2();
  run_ranks(2, [&](Communicator& world) {
    const ParallelLayout layout = layout_of(model, 1, 1, 2, 1);
    const auto straight = make_role(world, model, layout);
    const auto resumed = make_role(world, model, layout);
    const auto train = [&](Trainer& trainer, int step) {
      const Tokens tokens = batch_of(model, step);
      trainer.update(tokens.sequences(), quadratic_loss(tokens, 2, false),
                     {.learning_rate = rate(step)});
    };
    Trainer first(straight->weights, straight->groups, kOptions);
    train(first, 0);
    train(first, 1);
    OptimizerState saved = first.optimizer().state();
    for (torch::Tensor* tensor : {&saved.master, &saved.exp_avg, &saved.exp_avg_sq})
      *tensor = tensor->clone();
    train(first, 2);
    Trainer second(resumed->weights, resumed->groups, kOptions);
    second.optimizer().load_state(saved);
    train(second, 2);
    EXPECT_TRUE(torch::equal(straight->weights.storage, resumed->weights.storage));
  });
}

}  // namespace
}  // namespace tessera
