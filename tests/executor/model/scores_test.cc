// Log-probabilities and entropies over a cut vocabulary: verl's golden vectors, and torch's own
// log_softmax with autograd on the whole vocabulary.
#include "executor/model/scores.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/comm/thread_communicator.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

struct Scored {
  Tensor log_prob, entropy, d_hidden, d_head;
};

/// sum(a log_prob + b entropy) and its gradients by torch, nothing cut.
Scored whole_vocabulary(const Tensor& hidden, const Tensor& head, const Tensor& targets,
                        double temperature, const Tensor& a, const Tensor& b) {
  const Tensor h = hidden.detach().requires_grad_(), w = head.detach().requires_grad_();
  const Tensor log_p = (h.mm(w.t()) / temperature).log_softmax(1);
  const Tensor log_prob = log_p.gather(1, targets.unsqueeze(1)).squeeze(1);
  const Tensor entropy = -(log_p.exp() * log_p).sum(1);
  (a * log_prob + b * entropy).sum().backward();
  return {log_prob.detach(), entropy.detach(), h.grad(), w.grad()};
}

/// Scores by score_tokens on `tp` ranks; the head's gradient put together again.
Scored cut_vocabulary(int tp, const Tensor& hidden, const Tensor& head, const Tensor& targets,
                      const ScoreOptions& options, const Tensor& a, const Tensor& b) {
  std::vector<Scored> ranks(static_cast<std::size_t>(tp));
  run_ranks(tp, [&](Communicator& world) {
    at::set_num_threads(1);
    const Interval vocab = split(head.size(0), tp, world.rank());
    const Tensor h = hidden.detach().clone().requires_grad_();
    const Tensor w = head.narrow(0, vocab.lo, vocab.size()).clone().requires_grad_();
    const TokenScores scores =
        score_tokens(h, w, vocab, targets, tp == 1 ? nullptr : &world, options);
    Tensor loss = (a * scores.log_prob).sum();
    if (options.entropy) loss = loss + (b * scores.entropy).sum();
    loss.backward();
    ranks[static_cast<std::size_t>(world.rank())] = {
        scores.log_prob.detach(), options.entropy ? scores.entropy.detach() : Tensor(), h.grad(),
        w.grad()};
  });
  Scored result = ranks.front();
  std::vector<Tensor> parts;
  for (const Scored& rank : ranks) {
    EXPECT_TRUE(torch::equal(rank.log_prob, result.log_prob));
    EXPECT_TRUE(torch::equal(rank.d_hidden, result.d_hidden));
    parts.push_back(rank.d_head);
  }
  result.d_head = torch::cat(parts);
  return result;
}

struct Draw {
  Tensor hidden, head, targets, a, b;
};
Draw drawn(std::int64_t tokens, std::int64_t vocab) {
  torch::manual_seed(3);
  return {torch::randn({tokens, 12}), torch::randn({vocab, 12}),
          torch::randint(vocab, {tokens}, torch::kInt64), torch::randn({tokens}),
          torch::randn({tokens})};
}

TEST(TokenScores, EqualLogSoftmaxForEveryCutTemperatureAndChunk) {
  const Draw p = drawn(23, 31);
  for (const double temperature : {1.0, 0.7}) {
    const Scored want = whole_vocabulary(p.hidden, p.head, p.targets, temperature, p.a, p.b);
    for (const int tp : {1, 2, 3, 4}) {
      for (const std::int64_t chunk_rows : {7, 4096}) {
        const ScoreOptions options{temperature, true, chunk_rows};
        const Scored got = cut_vocabulary(tp, p.hidden, p.head, p.targets, options, p.a, p.b);
        EXPECT_LE(relative_error(got.log_prob, want.log_prob), 1e-5);
        EXPECT_LE(relative_error(got.entropy, want.entropy), 1e-5);
        EXPECT_LE(relative_error(got.d_hidden, want.d_hidden), 1e-5);
        EXPECT_LE(relative_error(got.d_head, want.d_head), 1e-5);
      }
    }
  }
}

TEST(TokenScores, WithoutEntropyTheLogProbIsTheSame) {
  const Draw p = drawn(9, 31);
  const Scored want =
      whole_vocabulary(p.hidden, p.head, p.targets, 1.0, p.a, torch::zeros_like(p.b));
  const Scored got = cut_vocabulary(2, p.hidden, p.head, p.targets, {1.0, false}, p.a, p.b);
  EXPECT_LE(relative_error(got.log_prob, want.log_prob), 1e-5);
  EXPECT_LE(relative_error(got.d_hidden, want.d_hidden), 1e-5);
  EXPECT_FALSE(got.entropy.defined());
}

TEST(TokenScores, HugeLogitsStayFinite) {
  const Tensor hidden = torch::tensor({{3000.0F, -3000.0F, 0.0F}});
  const Tensor targets = torch::tensor({std::int64_t{1}});
  const Tensor one = torch::ones({1});
  const Scored got = cut_vocabulary(2, hidden, torch::eye(3), targets, {}, one, one);
  EXPECT_FLOAT_EQ(got.log_prob.item<float>(), -6000.0F);
  EXPECT_FLOAT_EQ(got.entropy.item<float>(), 0.0F);
  EXPECT_TRUE(got.d_hidden.isfinite().all().item<bool>());
}

Tensor tensor_of(const nlohmann::json& rows) {
  const auto values = rows.get<std::vector<std::vector<double>>>();
  std::vector<Tensor> tensors;
  for (const auto& row : values) tensors.push_back(torch::tensor(row, torch::kFloat));
  return torch::stack(tensors);
}

TEST(TokenScores, EqualVerlsGoldenVectors) {
  const auto golden = nlohmann::json::parse(std::ifstream(golden_dir() / "logits.json"));
  ASSERT_GE(golden["cases"].size(), 1U);
  for (const auto& one : golden["cases"]) {
    std::vector<Tensor> blocks;
    for (const auto& row : one["inputs"]["logits"]) blocks.push_back(tensor_of(row));
    const Tensor logits = torch::cat(blocks);
    const Tensor targets = tensor_of(one["inputs"]["labels"]).to(torch::kInt64).reshape({-1});
    const Tensor head = torch::eye(logits.size(1));
    // The golden gradient is that of a mean over entropies: its weights follow from the mode; here
    // the forward values are compared, and the gradient where the mode is a plain token mean.
    const Tensor mask = tensor_of(one["inputs"]["response_mask"]).reshape({-1});
    const Tensor none = torch::zeros_like(mask);
    const Scored got = cut_vocabulary(3, logits, head, targets, {}, none, mask / mask.sum());
    EXPECT_LE(relative_error(got.log_prob, tensor_of(one["expected"]["log_prob"]).reshape({-1})),
              1e-5);
    EXPECT_LE(relative_error(got.entropy, tensor_of(one["expected"]["entropy"]).reshape({-1})),
              1e-5);
    run_ranks(3, [&](Communicator& world) {
      const Interval vocab = split(head.size(0), 3, world.rank());
      const Tensor squares =
          score_tokens(logits.to(torch::kFloat32), head.narrow(0, vocab.lo, vocab.size()), vocab,
                       targets, &world, {.chunk_rows = 3, .sum_pi_squared = true})
              .sum_pi_squared;
      const Tensor want = tensor_of(one["expected"]["sum_pi_squared"]).reshape({-1});
      EXPECT_LE(relative_error(squares, want), 1e-5);
    });
    if (one["inputs"]["options"]["loss_agg_mode"] != "token-mean") continue;
    std::vector<Tensor> gradients;
    for (const auto& row : one["expected_grad"]["logits"]) gradients.push_back(tensor_of(row));
    EXPECT_LE(relative_error(got.d_hidden, torch::cat(gradients)), 1e-5);
  }
}

TEST(TokenValues, AreTheValueHeadsProjection) {
  ModelSpec spec = small_model(4, 2);
  spec.head = ModelHead::value;
  on_ranks(spec, {2, 1}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(spec, layout, groups, {});
    const Tensor hidden = torch::randn({5, spec.hidden});
    const Tensor want = hidden.mm(weights.at("score.weight").t()).squeeze(1);
    EXPECT_LE(relative_error(token_values(weights, hidden), want), 1e-6);
  });
}

}  // namespace
}  // namespace tessera::testing
