// Adapters on a GPU: training equals the processor's (which adapters_test.cc holds to peft), and
// what a graph of generation draws with them is what training says of it.
#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"
#include "executor/adapters/adapter_weights.h"
#include "executor/comm/thread_communicator.h"
#include "executor/rollout/generate.h"
#include "executor/train/trainer.h"
#include "tests/executor/rollout/gpu_stream.h"
#include "tests/executor/rollout/recomputed.h"
#include "tests/executor/train/small_models.h"

namespace tessera::testing {
namespace {

using testing_models::Tokens;
using torch::Tensor;

constexpr int kSequences = 12;
const Lora kLora{.rank = 16, .alpha = 32, .targets = {}};

/// Heads of 64, as the kernels of bf16 take them.
ModelSpec medium_model() {
  ModelSpec spec = small_model(6, 2, 3);
  spec.hidden = 384;
  spec.head_dim = 64;
  spec.ffn = 640;
  spec.vocab = 515;
  return spec;
}

/// A model with adapters that change what it says. The values are those of fp32 on the processor,
/// rounded to the type.
struct Adapted {
  Weights weights, adapters;
};

void draw_both(Weights& adapters, std::uint64_t seed) {
  torch::manual_seed(seed);
  for (Tensor& each : adapters.tensors) each.copy_(torch::randn(each.sizes()) * 0.06);
}

std::unique_ptr<Adapted> adapted(DType dtype, torch::Device device) {
  const ModelSpec spec = medium_model();
  auto made = std::make_unique<Adapted>();
  made->weights = make_weights(parameter_table(spec), layout_of(spec, {}), {}, dtype, device);
  initialize(made->weights, 5, 0.08, torch::kCPU);
  made->adapters = make_adapters(made->weights, kLora);
  draw_both(made->adapters, 3);
  attach_adapters(made->weights, made->adapters, kLora);
  return made;
}

const Tokens& tokens() {
  static const Tokens made = testing_models::random_tokens(kSequences, 515, 40);
  return made;
}

/// What one update tells and leaves.
struct Trained {
  std::vector<float> log_prob, reference;
  double norm = 0;
  std::vector<Tensor> gradients, stepped;  // of the adapters, fp32 on the processor
};

std::vector<float> flat(const LogProbs& scores) {
  std::vector<float> all;
  for (const auto& row : scores.log_prob) all.insert(all.end(), row.begin(), row.end());
  return all;
}

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& each : tensors) copies.push_back(each.detach().to(torch::kCPU, torch::kFloat));
  return copies;
}

Trained trained(DType dtype, torch::Device device, Recompute recompute, bool offload) {
  const auto made = adapted(dtype, device);
  Trained result;
  run_ranks(1, [&](Communicator& world) {
    ParallelLayout layout = made->weights.layout;
    const auto role = testing_models::make_role(world, medium_model(), layout);
    Trainer trainer(made->weights, role->groups,
                    AdamWOptions{.eps = 1e-4, .clip_norm = 0, .offload = offload},
                    {.recompute = recompute,
                     .adapters = &made->adapters,
                     .offload_parameters = offload,
                     .offload_gradients = offload});
    const auto batch = tokens().sequences();
    const InferOptions infer{.token_limit = 60};
    InferOptions without = infer;
    without.adapters = false;
    result.reference = flat(trainer.log_probs(batch, without));
    result.log_prob = flat(trainer.log_probs(batch, infer));
    result.norm = trainer
                      .update(batch, testing_models::quadratic_loss(tokens(), 1, false),
                              {.token_limit = 60, .learning_rate = 1e-2})
                      .grad_norm;
    result.gradients = on_host(trainer.optimizer().whole_gradients());
    trainer.rest();
    trainer.wake();
    result.stepped = on_host(made->adapters.tensors);
  });
  return result;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

class AdaptersOnGpu : public OnGpuStream {};

TEST_F(AdaptersOnGpu, TrainAsTheProcessorDoes) {
  const Trained want = trained(DType::fp32, torch::kCPU, Recompute::none, false);
  EXPECT_GT(largest_difference(want.log_prob, want.reference), 0.5) << "adapters that say nothing";
  for (const auto& [dtype, tolerance] : {std::pair{DType::fp32, 2e-4}, {DType::bf16, 0.1}}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      for (const bool offload : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name_of(dtype) << " recompute "
                                          << static_cast<int>(recompute) << " offload " << offload);
        const Trained got = trained(dtype, torch::kCUDA, recompute, offload);
        EXPECT_LE(largest_difference(got.log_prob, want.log_prob), tolerance);
        EXPECT_LE(largest_difference(got.reference, want.reference), tolerance);
        EXPECT_NEAR(got.norm, want.norm, tolerance * want.norm);
        ASSERT_EQ(got.gradients.size(), want.gradients.size());
        for (std::size_t row = 0; row < want.gradients.size(); ++row) {
          EXPECT_LE(relative_error(got.gradients[row], want.gradients[row]), tolerance) << row;
          if (dtype == DType::fp32) {
            EXPECT_LE(relative_error(got.stepped[row], want.stepped[row]), tolerance) << row;
          }
        }
      }
    }
  }
}

TEST_F(AdaptersOnGpu, GraphsDrawWithThemAndSeeThemChange) {
  const torch::NoGradGuard no_grad;
  const auto all = prompts(13, 4, medium_model());
  const RolloutOptions options{.seed = 7,
                               .max_response_tokens = 150,
                               .eos = {3, 11},
                               .max_sequences = 24,
                               .prefill_tokens = 200};
  for (const auto& [dtype, tolerance] : {std::pair{DType::fp32, 2e-4}, {DType::bf16, 0.06}}) {
    SCOPED_TRACE(name_of(dtype));
    const auto made = adapted(dtype, torch::kCUDA);
    RolloutEngine engine(made->weights, alone);
    const Rollout first = engine.generate(5, all, options);
    EXPECT_LE(largest_gap(made->weights, alone, first.sequences), tolerance);
    // The second time every pass that decodes is a replayed graph.
    const Rollout second = engine.generate(5, all, options);
    EXPECT_LE(largest_gap(made->weights, alone, second.sequences), tolerance);
    draw_both(made->adapters, 4);
    EXPECT_GT(largest_gap(made->weights, alone, second.sequences), 10 * tolerance)
        << "other adapters";
    const Rollout after = engine.generate(5, all, options);
    EXPECT_LE(largest_gap(made->weights, alone, after.sequences), tolerance);
  }
}

}  // namespace
}  // namespace tessera::testing
