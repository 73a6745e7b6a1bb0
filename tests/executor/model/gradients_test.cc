// Loss and gradients of every cut equal one rank's; the layer pieces equal torch's own operators.
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <mutex>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/model/layer_ops.h"
#include "executor/model/scores.h"
#include "executor/tensor/norm_ops.h"
#include "executor/tensor/rope.h"
#include "tests/executor/model/fixture.h"
#include "tests/executor/python_oracle.h"

namespace tessera::testing {
namespace {

using torch::Tensor;
using Gradients = std::map<std::string, Tensor>;

struct Outcome {
  double loss = 0;
  Gradients gradients;  // whole, by checkpoint name
};

/// Forward and backward of one batch through the pipeline; fills each parameter's gradient.
double backward_through(const Weights& weights, const ParallelGroups& groups,
                        const PackedTokens& tokens) {
  Tensor input = torch::empty({tokens.tokens(), weights.model().hidden}), output, loss;
  for (int stage = 0; stage < groups.pp_size; ++stage) {
    if (groups.coord.pp == stage) {
      input.requires_grad_(stage > 0);
      output = stage_forward(weights, groups, tokens, input);
    }
    if (stage + 1 < groups.pp_size) {
      torch::NoGradGuard no_grad;
      pass_on(groups, groups.coord.pp == stage ? output.detach() : input, stage, stage + 1);
    }
  }
  if (groups.last_stage) {
    const Tensor targets = (tokens.ids * 7 + 3) % weights.model().vocab;
    const TokenScores scores = score_tokens(weights, groups, output, targets, {0.8});
    const Tensor slope = torch::arange(1, tokens.tokens() + 1).to(torch::kFloat).cos();
    loss = (scores.log_prob * slope + 0.3 * scores.entropy).sum();
  }
  Tensor incoming = torch::empty_like(input);
  for (int stage = groups.pp_size - 1; stage >= 0; --stage) {
    if (groups.coord.pp == stage) {
      groups.last_stage ? loss.backward() : output.backward(incoming);
    }
    if (stage > 0) {
      torch::NoGradGuard no_grad;
      pass_on(groups, groups.coord.pp == stage ? input.grad() : incoming, stage, stage - 1);
    }
  }
  return groups.last_stage ? loss.item<double>() : 0.0;
}

Outcome outcome_of(const ModelSpec& spec, const std::filesystem::path& folder, Degrees degrees) {
  Outcome outcome;
  std::mutex mutex;
  on_ranks(spec, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(spec, layout, groups, folder);
    for (Tensor& tensor : weights.tensors) {
      if (tensor.defined()) tensor.requires_grad_();
    }
    const std::vector<std::vector<std::int64_t>> sequences{
        {1, 5, 9, 2, 6, 5}, {3, 5, 8}, {9, 7, 9}};
    const double loss = backward_through(weights, groups, pack_tokens(sequences, torch::kCPU));
    Weights gradients = weights;
    for (Tensor& tensor : gradients.tensors) {
      if (tensor.defined()) tensor = tensor.grad();
    }
    reduce_shared_gradients(weights, groups, gradients.tensors);
    gather_weights(gradients, groups, [&](const Parameter& parameter, const Tensor& whole) {
      outcome.gradients[parameter.name] = whole.clone();
    });
    const std::lock_guard lock(mutex);
    if (groups.last_stage) outcome.loss = loss;
  });
  return outcome;
}

void expect_cuts_agree(const ModelSpec& spec, const std::filesystem::path& folder,
                       const std::vector<Degrees>& cuts) {
  const Outcome want = outcome_of(spec, folder, {});
  ASSERT_EQ(want.gradients.size(), parameter_table(spec).rows.size());
  for (const Degrees cut : cuts) {
    const Outcome got = outcome_of(spec, folder, cut);
    const std::string where = "tp" + std::to_string(cut.tp) + " pp" + std::to_string(cut.pp);
    EXPECT_NEAR(got.loss, want.loss, 1e-5 * std::max(1.0, std::abs(want.loss))) << where;
    for (const auto& [name, gradient] : want.gradients) {
      EXPECT_LE(relative_error(got.gradients.at(name), gradient), 1e-5) << where << " " << name;
    }
  }
}

const std::vector<Degrees> kCuts{{2, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 4}};

TEST(Gradients, OfACutModelEqualOneRanks) {
  for (const char* name :
       {"tiny-llama-biased", "tiny-qwen2", "tiny-qwen3", "tiny-mistral-window"}) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    expect_cuts_agree(fixture.spec, fixture.folder, kCuts);
  }
}

TEST(Gradients, OfCutExpertsEqualOneRanks) {
  for (const char* name : {"tiny-mixtral-tied", "tiny-qwen2-moe", "tiny-qwen3-moe"}) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    expect_cuts_agree(fixture.spec, fixture.folder, {{2, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 3}});
  }
}

TEST(Gradients, OfATiedEmbeddingAreSummedOverBothEnds) {
  for (const char* name : {"tiny-qwen2-tied", "tiny-qwen3-tied"}) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    expect_cuts_agree(fixture.spec, fixture.folder, kCuts);
  }
}

TEST(Gradients, OfSharedAndUnevenHeadsEqualOneRanks) {
  expect_cuts_agree(small_model(10, 2), {}, {{2, 1}, {3, 1}, {4, 1}});
  expect_cuts_agree(small_model(6, 3), {}, {{2, 1}, {4, 1}, {5, 1}});
  expect_cuts_agree(small_model(7, 1), {}, {{4, 1}, {2, 2}});
}

/// transformers' classes make the embedding with config.pad_token_id as padding_idx.
TEST(Gradients, OfThePaddingRowAreTransformers) {
  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers: set TESSERA_VENV";
  const std::string script = TESSERA_SOURCE_DIR "/tests/executor/model/padding_oracle.py ";
  TemporaryFolder temporary;
  const auto file = temporary.path / "gradients.safetensors";
  for (const char* name : {"tiny-qwen2", "tiny-qwen2-tied", "tiny-qwen3-moe"}) {
    SCOPED_TRACE(name);
    Fixture fixture = read_fixture(name);
    fixture.spec.pad_token = 5;
    ASSERT_EQ(run_python(python, script + fixture.folder.string() + " 5 " + file.string()), 0);
    Problems problems;
    const auto read = open_safetensors(file, problems);
    ASSERT_TRUE(read);
    for (const Degrees cut : {Degrees{1, 1}, {3, 1}, {2, 2}}) {
      const Outcome got = outcome_of(fixture.spec, fixture.folder, cut);
      int compared = 0;
      for (const TensorView& view : read->tensors) {
        const auto ours = got.gradients.find(std::string(view.name));
        if (ours == got.gradients.end()) continue;  // experts, which are one tensor in memory
        Tensor want = torch::empty(view.shape);
        std::memcpy(want.mutable_data_ptr(), view.data.data(), view.data.size());
        EXPECT_LE(relative_error(ours->second, want), 1e-5) << view.name;
        ++compared;
      }
      EXPECT_GE(compared, 10);
    }
  }
}

/// Values and input gradients of two functions of the same tensors agree.
void expect_same(const std::function<Tensor(std::vector<Tensor>&)>& ours,
                 const std::function<Tensor(std::vector<Tensor>&)>& theirs,
                 const std::vector<Tensor>& inputs, double tolerance) {
  const auto evaluate = [&](const auto& fn) {
    std::vector<Tensor> leaves, results;
    for (const Tensor& x : inputs) leaves.push_back(x.clone().requires_grad_());
    const Tensor y = fn(leaves);
    torch::manual_seed(9);
    y.backward(torch::randn(y.sizes()).to(y.scalar_type()));
    results.push_back(y.detach());
    for (const Tensor& x : leaves) results.push_back(x.grad());
    return results;
  };
  const auto got = evaluate(ours), want = evaluate(theirs);
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(relative_error(got[i].to(torch::kFloat), want[i].to(torch::kFloat)), tolerance) << i;
  }
}

TEST(LayerOps, EqualTorchsOperators) {
  torch::manual_seed(4);
  for (const auto& [type, tolerance] : {std::pair{torch::kFloat, 1e-6}, {torch::kBFloat16, 2e-2}}) {
    const auto random = [type = type](std::vector<std::int64_t> shape) {
      return torch::randn(shape).to(type);
    };
    expect_same([](auto& x) { return rms_norm(x[0], x[1], 1e-5); },
                [](auto& x) {
                  const Tensor wide = x[0].to(torch::kFloat);
                  const Tensor unit = wide * (wide.square().mean(-1, true) + 1e-5).rsqrt();
                  return unit.to(x[0].scalar_type()) * x[1];
                },
                {random({7, 18}), random({18})}, tolerance);
    expect_same([](auto& x) { return swiglu(x[0], x[1]); },
                [](auto& x) { return torch::silu(x[0]) * x[1]; }, {random({5, 9}), random({5, 9})},
                tolerance);
    expect_same(
        [](auto& x) {
          const auto [a, b, c] =
              column_parallel(x[0], {x[1], x[2], x[3]}, {x[4], x[5], x[6]}, nullptr);
          return torch::cat({a, b * 2, c * 3}, 1);
        },
        [](auto& x) {
          return torch::cat({at::linear(x[0], x[1], x[4]), at::linear(x[0], x[2], x[5]) * 2,
                             at::linear(x[0], x[3], x[6]) * 3},
                            1);
        },
        {random({6, 8}), random({5, 8}), random({3, 8}), random({3, 8}), random({5}), random({3}),
         random({3})},
        tolerance);
    expect_same([](auto& x) { return row_parallel(x[0], x[1], x[2], nullptr); },
                [](auto& x) { return x[0].mm(x[1]) + x[2]; },
                {random({6, 8}), random({8, 5}), random({5})}, tolerance);
    const RopeTable table = rope_table(rope_frequencies({}, 8), 1.3, torch::arange(6), type);
    expect_same([&](auto& x) { return apply_rope(x[0], table); },
                [&](auto& x) {
                  const auto halves = x[0].chunk(2, -1);
                  const Tensor turned = torch::cat({-halves[1], halves[0]}, -1);
                  const Tensor cos = torch::cat({table.cos, table.cos}, -1).unsqueeze(1);
                  const Tensor sin = torch::cat({table.sin, table.sin}, -1).unsqueeze(1);
                  return x[0] * cos + turned * sin;
                },
                {random({6, 3, 8})}, tolerance);
  }
}

}  // namespace
}  // namespace tessera::testing
