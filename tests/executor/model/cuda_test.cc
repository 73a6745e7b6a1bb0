// One model on a GPU and a CPU: fp32 is equal, bf16 (flash kernels) is close, decoding agrees.
#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"
#include "executor/model/scores.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;
using Sequences = std::vector<std::vector<std::int64_t>>;

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU on this machine";
  }
  ParallelGroups alone;
};

ModelSpec medium_model(std::int64_t window) {
  ModelSpec spec = small_model(6, 2, 3);
  spec.hidden = 192;
  spec.head_dim = 32;
  spec.ffn = 320;
  spec.vocab = 515;
  spec.sliding_window = window;
  return spec;
}

Weights drawn(const ModelSpec& spec) {
  Weights weights =
      make_weights(parameter_table(spec), layout_of(spec, {}), {}, DType::fp32, torch::kCPU);
  initialize(weights, 21, 0.1);
  return weights;
}

Weights moved(const Weights& weights, torch::Device device, DType dtype) {
  Weights copy = make_weights(weights.table, weights.layout, weights.coord, dtype, device);
  for (std::size_t row = 0; row < copy.tensors.size(); ++row) {
    copy.tensors[row].copy_(weights.tensors[row]);
  }
  return copy;
}

Sequences drawn_sequences(const ModelSpec& spec, const std::vector<std::int64_t>& lengths) {
  torch::manual_seed(13);
  Sequences sequences;
  for (const std::int64_t length : lengths) {
    const Tensor ids = torch::randint(spec.vocab, {length}, torch::kInt64);
    sequences.emplace_back(ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + length);
  }
  return sequences;
}

Tensor logits_of(const Weights& weights, const ParallelGroups& groups, const Sequences& sequences) {
  torch::NoGradGuard no_grad;
  const PackedTokens tokens = pack_tokens(sequences, weights.device());
  return full_logits(weights, groups, stage_forward(weights, groups, tokens)).cpu();
}

TEST_F(OnGpu, LogitsEqualTransformers) {
  for (const char* name : {"tiny-llama-biased", "tiny-llama-yarn", "tiny-mistral-window",
                           "tiny-qwen2-tied", "tiny-qwen3"}) {
    const Fixture fixture = read_fixture(name);
    Weights weights = make_weights(parameter_table(fixture.spec), layout_of(fixture.spec, {}), {},
                                   DType::fp32, torch::kCUDA);
    Problems problems;
    load_weights(weights, fixture.folder, 1, problems);
    EXPECT_LE(relative_error(logits_of(weights, alone, fixture.sequences), fixture.logits), 1e-5)
        << name;
  }
}

TEST_F(OnGpu, Bf16IsCloseToFp32WithAndWithoutAWindow) {
  for (const std::int64_t window : {0, 20}) {
    const ModelSpec spec = medium_model(window);
    const Weights weights = drawn(spec);
    const Sequences sequences = drawn_sequences(spec, {70, 3, 129, 64});
    const Tensor want = logits_of(weights, alone, sequences);
    const Weights bf16 = moved(weights, torch::kCUDA, DType::bf16);
    const Tensor got = logits_of(bf16, alone, sequences);
    EXPECT_LE(relative_error(got, want), 3e-2) << window;
    EXPECT_LE(relative_error(logits_of(moved(weights, torch::kCUDA, DType::fp32), alone, sequences),
                             want),
              1e-5);
  }
}

/// Gradients of all parameters by row, in fp32 on the CPU.
std::vector<Tensor> gradients_of(Weights weights, const ParallelGroups& groups,
                                 const Sequences& sequences) {
  for (Tensor& tensor : weights.tensors) tensor.requires_grad_();
  const PackedTokens tokens = pack_tokens(sequences, weights.device());
  const Tensor hidden = stage_forward(weights, groups, tokens);
  const Tensor targets = (tokens.ids * 7 + 3) % weights.model().vocab;
  const TokenScores scores = score_tokens(weights, groups, hidden, targets, {0.9, true, 50});
  (scores.log_prob.mean() + 0.1 * scores.entropy.mean()).backward();
  std::vector<Tensor> gradients;
  for (Tensor& tensor : weights.tensors) {
    gradients.push_back(tensor.grad().to(torch::kFloat).cpu());
    tensor.mutable_grad() = Tensor();
    tensor.requires_grad_(false);
  }
  return gradients;
}

TEST_F(OnGpu, GradientsEqualTheCpus) {
  const ModelSpec spec = medium_model(0);
  const Weights weights = drawn(spec);
  const Sequences sequences = drawn_sequences(spec, {40, 7, 33});
  const auto want = gradients_of(weights, alone, sequences);
  const auto fp32 = gradients_of(moved(weights, torch::kCUDA, DType::fp32), alone, sequences);
  const auto bf16 = gradients_of(moved(weights, torch::kCUDA, DType::bf16), alone, sequences);
  const auto again = gradients_of(moved(weights, torch::kCUDA, DType::fp32), alone, sequences);
  for (std::size_t row = 0; row < want.size(); ++row) {
    const std::string& name = weights.table.rows[row].name;
    EXPECT_LE(relative_error(fp32[row], want[row]), 1e-4) << name;
    EXPECT_LE(relative_error(bf16[row], want[row]), 1e-1) << name;
    EXPECT_TRUE(torch::equal(again[row], fp32[row])) << name;
  }
}

}  // namespace
}  // namespace tessera::testing
