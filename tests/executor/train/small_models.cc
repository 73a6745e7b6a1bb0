#include "tests/executor/train/small_models.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"

namespace tessera::testing_models {

ModelSpec qwen2() {
  return {.family = ModelFamily::qwen2,
          .layers = 4,
          .hidden = 32,
          .query_heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 44,
          .vocab = 53,
          .max_positions = 64,
          .tied_embeddings = true,
          .qkv_bias = true,
          .dtype = DType::fp32};
}

ModelSpec llama() {
  return {.family = ModelFamily::llama,
          .layers = 5,
          .hidden = 24,
          .query_heads = 6,
          .kv_heads = 3,
          .head_dim = 4,
          .ffn = 37,
          .vocab = 41,
          .max_positions = 64,
          .dtype = DType::fp32};
}

ModelSpec qwen3() {
  return {.family = ModelFamily::qwen3,
          .layers = 4,
          .hidden = 24,
          .query_heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 40,
          .vocab = 47,
          .max_positions = 64,
          .qk_norm = true,
          .dtype = DType::fp32};
}

ModelSpec critic() {
  ModelSpec model = qwen2();
  model.head = ModelHead::value;
  model.tied_embeddings = false;
  return model;
}

ModelSpec mixtral() {
  ModelSpec model = llama();
  model.family = ModelFamily::mixtral;
  model.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 21, .normalised = true};
  return model;
}

ModelSpec qwen2_moe() {
  ModelSpec model = qwen2();
  model.family = ModelFamily::qwen2_moe;
  model.tied_embeddings = false;
  model.moe = MoeSpec{.experts = 6,
                      .experts_per_token = 3,
                      .expert_ffn = 12,
                      .shared_ffn = 20,
                      .shared_gate = true,
                      .dense_layers = {1}};
  return model;
}

ModelSpec qwen3_moe() {
  ModelSpec model = qwen3();
  model.family = ModelFamily::qwen3_moe;
  model.moe = MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 16, .normalised = true};
  return model;
}

ParallelLayout layout_of(const ModelSpec& model, int tp, int pp, int dp, int zero) {
  return {{.tp = tp, .pp = pp, .dp = dp}, zero, even_stages(model.layers, pp)};
}

std::unique_ptr<RoleOnRank> make_role(Communicator& world, const ModelSpec& model,
                                      const ParallelLayout& layout, DType dtype) {
  torch::set_num_threads(1);
  std::vector<int> ranks(static_cast<std::size_t>(layout.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  Problems problems;
  const RankMap map =
      make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "test", problems);
  auto role = std::make_unique<RoleOnRank>();
  role->groups = make_groups(world, map);
  role->weights =
      make_weights(parameter_table(model), layout, role->groups.coord, dtype, torch::kCPU);
  initialize(role->weights, 7, 0.2);
  return role;
}

std::vector<TokenSequence> Tokens::sequences() const {
  std::vector<TokenSequence> views;
  for (std::size_t i = 0; i < prompts.size(); ++i) views.push_back({prompts[i], responses[i]});
  return views;
}

std::int64_t Tokens::response_tokens() const {
  std::int64_t count = 0;
  for (const auto& response : responses) count += static_cast<std::int64_t>(response.size());
  return count;
}

Tokens random_tokens(int sequences, std::int64_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int longest) {
    std::vector<std::int32_t> ids(1 + random() % static_cast<std::uint32_t>(longest));
    for (auto& id : ids)
      id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab));
    return ids;
  };
  Tokens tokens;
  for (int s = 0; s < sequences; ++s) {
    tokens.prompts.push_back(draw(6));
    tokens.responses.push_back(draw(9));
  }
  return tokens;
}

LossFunction quadratic_loss(const Tokens& tokens, int dp, bool entropy) {
  const double scale = static_cast<double>(dp) / static_cast<double>(tokens.response_tokens());
  return [&tokens, scale, entropy](std::span<const int> sequences, std::span<const double> scores,
                                   std::span<const double> entropies) {
    LossGradient loss;
    std::size_t next = 0;
    double mean = 0;
    for (const int s : sequences) {
      const std::size_t count = tokens.responses[static_cast<std::size_t>(s)].size();
      for (std::size_t t = 0; t < count; ++t, ++next) {
        const double a = std::sin(1.0 + 3.7 * s + 1.3 * static_cast<double>(t));
        const double x = scores[next];
        loss.value += scale * (a * x + 0.1 * x * x);
        loss.score_gradient.push_back(scale * (a + 0.2 * x));
        mean += x;
        if (!entropy) continue;
        loss.value -= scale * 0.3 * entropies[next];
        loss.entropy_gradient.push_back(-scale * 0.3);
      }
    }
    loss.weight = static_cast<double>(next);
    loss.sums["half"] = loss.value / 2;
    loss.means["score"] = mean / static_cast<double>(next);
    return loss;
  };
}

torch::Tensor slice_like(const Weights& weights, int row, const torch::Tensor& whole,
                         int outer_dim_of_whole) {
  const std::size_t r = static_cast<std::size_t>(row);
  const Parameter& parameter = weights.table.rows[r];
  torch::Tensor part = whole.movedim(0, outer_dim_of_whole);  // checkpoint order
  const Box box = *compute_box(parameter, weights.layout, weights.coord);
  for (int dim = 0; dim < box.rank; ++dim) {
    const Interval range = box.dims[static_cast<std::size_t>(dim)];
    part = part.narrow(dim, range.lo, range.size());
  }
  return part.movedim(std::max(parameter.split_dim, 0), 0);
}

double relative_error(const torch::Tensor& a, const torch::Tensor& ref) {
  const double difference =
      (a.to(torch::kFloat64) - ref.to(torch::kFloat64)).abs().max().item<double>();
  const double largest = ref.abs().max().item<double>();
  return largest > 0 ? difference / largest : difference;
}

}  // namespace tessera::testing_models
