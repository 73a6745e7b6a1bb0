// Routed experts: gradients and the load-balancing loss equal transformers'; the grouped products
// equal one product an expert.
#include "executor/model/experts.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/model/expert_products.h"
#include "executor/model/scores.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;
using Gradients = std::map<std::string, Tensor>;

constexpr const char* kFixtures[] = {"tiny-mixtral",   "tiny-mixtral-tied",
                                     "tiny-qwen2-moe", "tiny-qwen2-moe-unbiased",
                                     "tiny-qwen3-moe", "tiny-qwen3-moe-step"};

void expect_close(const Tensor& got, const Tensor& want, const std::string& what,
                  double within = 1e-5) {
  EXPECT_LE(relative_error(got, want), within) << what;
}

/// Gradients by checkpoint name of `loss` of a forward pass on one rank.
using LossOf = std::function<Tensor(const Weights&, const ParallelGroups&, const Tensor& hidden)>;
Gradients gradients_of(const Fixture& fixture, Recompute recompute, const LossOf& loss,
                       const RouterZLoss& z_loss = {}, const RouterBalance& balance = {}) {
  Gradients gradients;
  on_ranks(fixture.spec, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    for (Tensor& tensor : weights.tensors) tensor.requires_grad_();
    const PackedTokens tokens = pack_tokens(fixture.sequences, torch::kCPU);
    StageOptions options;
    options.recompute = recompute;
    options.z_loss = z_loss;
    options.balance = balance;
    loss(weights, groups, stage_forward(weights, groups, tokens, {}, options)).backward();
    Weights of_weights = weights;
    for (Tensor& tensor : of_weights.tensors) {
      tensor = tensor.grad().defined() ? tensor.grad() : torch::zeros_like(tensor);
    }
    gather_weights(of_weights, groups, [&](const Parameter& parameter, const Tensor& whole) {
      gradients[parameter.name] = whole.clone();
    });
  });
  return gradients;
}

/// The loss of scripts/make_fixtures.py.
Tensor scored_loss(const Weights& weights, const ParallelGroups& groups, const Fixture& fixture,
                   const Tensor& hidden) {
  const Tensor ids = pack_tokens(fixture.sequences, torch::kCPU).ids;
  const TokenScores scores =
      score_tokens(weights, groups, hidden, (ids * 7 + 3) % fixture.spec.vocab, {1.0, false});
  return (scores.log_prob * torch::arange(1, ids.size(0) + 1).to(torch::kFloat).cos()).sum();
}

TEST(Experts, GradientsEqualTransformersWhateverIsRecomputed) {
  for (const char* name : kFixtures) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const Gradients got = gradients_of(
          fixture, recompute,
          [&](const Weights& weights, const ParallelGroups& groups, const Tensor& hidden) {
            const Tensor loss = scored_loss(weights, groups, fixture, hidden);
            expect_close(loss.detach().view({1}), fixture.gradients.at("loss"), "loss");
            return loss;
          });
      ASSERT_GT(got.size(), 20u);
      for (const auto& [parameter, gradient] : got) {
        expect_close(gradient, fixture.gradients.at(parameter), parameter);
      }
    }
  }
}

/// Gradients of the tensor-parallel ranks, added up over those who hold the same.
Gradients gradients_of_cut(const Fixture& fixture, const Degrees& degrees) {
  Gradients gradients;
  on_ranks(fixture.spec, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    for (Tensor& tensor : weights.tensors) {
      if (tensor.defined()) tensor.requires_grad_();
    }
    const PackedTokens tokens = pack_tokens(fixture.sequences, torch::kCPU);
    const TensorParallel tp(groups.tp.get(), /*sequence=*/true);
    const Tensor hidden = gather_tokens(stage_forward(weights, groups, tokens, {}, {}), tp);
    const Tensor loss = scored_loss(weights, groups, fixture, hidden);
    expect_close(loss.detach().view({1}), fixture.gradients.at("loss"), "loss");
    loss.backward();
    const torch::NoGradGuard no_grad;
    Weights of_weights = weights;
    for (std::size_t row = 0; row < of_weights.tensors.size(); ++row) {
      Tensor& tensor = of_weights.tensors[row];
      if (!tensor.defined()) continue;
      tensor = tensor.grad().defined() ? tensor.grad() : torch::zeros_like(tensor);
      if (weights.table.rows[row].experts > 0) all_reduce_(tensor, groups.edp.get());
    }
    reduce_shared_gradients(weights, groups, of_weights.tensors);
    gather_weights(of_weights, groups, [&](const Parameter& parameter, const Tensor& whole) {
      gradients[parameter.name] = whole.clone();
    });
  });
  return gradients;
}

/// Every second of four tensor-parallel ranks has half of the columns of all experts, or of half of
/// them.
TEST(Experts, GradientsOfFewerPartsThanRanksEqualTransformers) {
  for (const char* name : kFixtures) {
    const Fixture fixture = read_fixture(name);
    for (const int ep : {1, 2}) {
      SCOPED_TRACE(std::string(name) + " ep" + std::to_string(ep));
      const Gradients got =
          gradients_of_cut(fixture, {.tp = 4, .ep = ep, .etp = 2, .sequence = true});
      ASSERT_GT(got.size(), 20u);
      for (const auto& [parameter, gradient] : got) {
        expect_close(gradient, fixture.gradients.at(parameter), parameter);
      }
    }
  }
}

TEST(Experts, BalanceLossAndItsGradientsEqualTransformersWhateverIsRecomputed) {
  for (const char* name : kFixtures) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    std::int64_t tokens = 0;
    for (const auto& sequence : fixture.sequences) {
      tokens += static_cast<std::int64_t>(sequence.size());
    }
    const std::int64_t experts = fixture.spec.moe->experts;
    std::int64_t layers = 0;
    for (const auto& [parameter, gradient] : fixture.gradients) {
      layers += parameter.starts_with("balance/") && parameter.find("gate") != std::string::npos;
    }
    const auto rows = static_cast<double>(tokens * layers);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const RouterBalance balance{.tokens = tokens,
                                  .slope = static_cast<double>(experts) / (rows * rows),
                                  .choices = torch::zeros({layers, experts}),
                                  .all_choices = torch::zeros({experts}),
                                  .value = torch::zeros({1})};
      const Gradients got = gradients_of(
          fixture, recompute,
          [&](const Weights&, const ParallelGroups&, const Tensor& hidden) {
            Tensor all = balance.all_choices;
            all.copy_(balance.choices.sum(0));
            return (hidden * 0).sum();
          },
          {}, balance);
      expect_close(balance.value, fixture.gradients.at("balance"), "loss", 1e-6);
      int compared = 0;
      for (const auto& [parameter, gradient] : fixture.gradients) {
        if (!parameter.starts_with("balance/")) continue;
        expect_close(got.at(parameter.substr(8)), gradient, parameter);
        ++compared;
      }
      EXPECT_GE(compared, 2);
    }
  }
}

/// Megatron-LM's formula, differentiated by torch through transformers' modules.
TEST(Experts, ZLossAndItsGradientsEqualMegatronsFormula) {
  for (const char* name : kFixtures) {
    SCOPED_TRACE(name);
    const Fixture fixture = read_fixture(name);
    std::int64_t tokens = 0;
    for (const auto& sequence : fixture.sequences) {
      tokens += static_cast<std::int64_t>(sequence.size());
    }
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const RouterZLoss z_loss{.tokens = tokens,
                               .slope = 1.0 / static_cast<double>(tokens),
                               .squares = torch::zeros({1})};
      const Gradients got = gradients_of(
          fixture, recompute,
          [](const Weights&, const ParallelGroups&, const Tensor& hidden) {
            return (hidden * 0).sum();
          },
          z_loss);
      expect_close(z_loss.squares * z_loss.slope, fixture.gradients.at("z"), "loss", 1e-6);
      int compared = 0;
      for (const auto& [parameter, gradient] : fixture.gradients) {
        if (!parameter.starts_with("z/")) continue;
        // The embedding's has come through the whole model in fp32.
        const bool through_all = parameter.find("embed_tokens") != std::string::npos;
        expect_close(got.at(parameter.substr(2)), gradient, parameter, through_all ? 1e-5 : 1e-6);
        ++compared;
      }
      EXPECT_GE(compared, 2);
    }
  }
}

TEST(Experts, ZLossCountsTheFirstRowsAlone) {
  torch::manual_seed(4);
  const Tensor logits = torch::randn({7, 5}), weights = torch::randn({7, 5});
  for (const std::int64_t first : {0, 3, 20}) {
    const Tensor ours = logits.clone().requires_grad_(), theirs = logits.clone().requires_grad_();
    const RouterZLoss z_loss{
        .tokens = 8, .first = first, .slope = 0.3, .squares = torch::zeros({1})};
    (with_z_loss(ours, z_loss) * weights).sum().backward();
    const std::int64_t counted = first == 0 ? 7 : first == 3 ? 5 : 0;
    const Tensor squares = theirs.narrow(0, 0, counted).logsumexp(1).square().sum();
    ((theirs * weights).sum() + 0.3 * squares).backward();
    expect_close(ours.grad(), theirs.grad(), "gradient", 1e-6);
    expect_close(z_loss.squares, squares.detach().view({1}), "value", 1e-6);
  }
}

/// What ranks hold of a folder that transformers saved is, gathered, that folder.
TEST(Experts, OfEveryLayoutAreGatheredAsTransformersSavesThem) {
  for (const char* name : {"tiny-mixtral", "tiny-qwen2-moe", "tiny-qwen3-moe"}) {
    const Fixture fixture = read_fixture(name);
    Gradients saved;
    on_ranks(fixture.spec, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
      const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
      gather_weights(weights, groups, [&](const Parameter& parameter, const Tensor& whole) {
        saved[parameter.name] = whole.clone();
      });
    });
    Problems problems;
    const auto file = open_safetensors(fixture.folder / "model.safetensors", problems);
    ASSERT_EQ(file->tensors.size(), saved.size());
    for (const TensorView& view : file->tensors) {
      const Tensor& whole = saved.at(view.name);
      ASSERT_EQ(static_cast<std::size_t>(whole.nbytes()), view.data.size());
      EXPECT_EQ(std::memcmp(whole.const_data_ptr(), view.data.data(), view.data.size()), 0);
    }
    for (const Degrees degrees : {Degrees{1, 1, 2, 2},
                                  {2, 1, 2, 2},
                                  {1, 1, 4, 4},
                                  {1, 3, 2, 2},
                                  {4, 1, 1, 1, 2},
                                  {4, 1, 1, 2, 2},
                                  {2, 1, 1, 1, 1}}) {
      std::size_t gathered = 0;
      on_ranks(fixture.spec, degrees,
               [&](const ParallelLayout& layout, const ParallelGroups& groups) {
                 const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
                 gather_weights(weights, groups, [&](const Parameter& parameter, const Tensor& t) {
                   EXPECT_TRUE(torch::equal(t, saved.at(parameter.name))) << parameter.name;
                   ++gathered;
                 });
               });
      EXPECT_EQ(gathered, saved.size());
    }
  }
}

/// Experts that adjoin in one memory, as an arena holds them, or lie apart.
ExpertWeights drawn_experts(std::int64_t experts, std::int64_t columns, std::int64_t hidden,
                            bool adjoin) {
  const Tensor memory = torch::randn({3 * experts * columns * hidden});
  const auto at = [&](std::int64_t place) {
    const Tensor part =
        torch::empty({0}, memory.options())
            .set_(memory.storage(), place * columns * hidden, {columns, hidden}, {hidden, 1});
    return adjoin ? part : part.clone();
  };
  ExpertWeights weights;
  for (std::int64_t e = 0; e < experts; ++e) {
    weights.gate_up.push_back(at(2 * e));
    weights.gate_up.push_back(at(2 * e + 1));
    weights.down.push_back(at(2 * experts + e));
  }
  return weights;
}

ExpertWeights copies_of(const ExpertWeights& weights) {
  ExpertWeights copies;
  for (const Tensor& x : weights.gate_up) copies.gate_up.push_back(x.clone().requires_grad_());
  for (const Tensor& x : weights.down) copies.down.push_back(x.clone().requires_grad_());
  return copies;
}

/// One expert after another with torch's own operators.
Tensor reference_mlp(const Tensor& x, const std::vector<std::int64_t>& counts,
                     const ExpertWeights& weights) {
  std::vector<Tensor> parts;
  std::int64_t next = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const Tensor rows = x.narrow(0, next, counts[e]);
    const Tensor gate = rows.mm(weights.gate_up[2 * e].t());
    const Tensor up = rows.mm(weights.gate_up[2 * e + 1].t());
    parts.push_back((torch::silu(gate) * up).mm(weights.down[e]));
    next += counts[e];
  }
  return torch::cat(parts);
}

void expect_one_product_an_expert(std::int64_t hidden, bool adjoin, bool recompute) {
  const std::vector<std::int64_t> counts{3, 0, 7, 1};
  ExpertWeights ours = drawn_experts(4, 8, hidden, adjoin);
  const ExpertWeights theirs = copies_of(ours);
  for (Tensor& x : ours.gate_up) x.requires_grad_();
  for (Tensor& x : ours.down) x.requires_grad_();
  const Tensor own_x = torch::randn({11, hidden}).requires_grad_();
  const Tensor their_x = own_x.detach().clone().requires_grad_();
  const Tensor g = torch::randn({11, hidden});
  const Tensor got =
      expert_mlp(own_x, expert_rows(torch::tensor(counts, torch::kLong)), ours, recompute);
  const Tensor want = reference_mlp(their_x, counts, theirs);
  expect_close(got, want, "values");
  got.backward(g);
  want.backward(g);
  expect_close(own_x.grad(), their_x.grad(), "rows");
  for (std::size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] == 0) {
      EXPECT_EQ(ours.down[e].grad().abs().max().item<float>(), 0);
      continue;
    }
    expect_close(ours.gate_up[2 * e].grad(), theirs.gate_up[2 * e].grad(), "gate");
    expect_close(ours.gate_up[2 * e + 1].grad(), theirs.gate_up[2 * e + 1].grad(), "up");
    expect_close(ours.down[e].grad(), theirs.down[e].grad(), "down");
  }
}

TEST(Experts, ProductsByGroupEqualOneProductAnExpert) {
  torch::manual_seed(3);
  for (const std::int64_t hidden : {16, 13}) {  // strides that grouped products take, or not
    for (const bool adjoin : {true, false}) {
      for (const bool recompute : {false, true}) {
        expect_one_product_an_expert(hidden, adjoin, recompute);
      }
    }
  }
}

TEST(Experts, ProductsOfNoRowsAtAll) {
  const ExpertWeights weights = drawn_experts(2, 8, 16, true);
  const Tensor none = torch::zeros({2}, torch::kLong);
  EXPECT_EQ(expert_mlp(torch::empty({0, 16}), expert_rows(none), weights).sizes(),
            (std::vector<std::int64_t>{0, 16}));
}

}  // namespace
}  // namespace tessera::testing
