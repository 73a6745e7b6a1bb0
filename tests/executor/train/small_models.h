// Tiny random models, batches and a loss for trainer tests: every rank makes the same from seeds.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "executor/batching/batch.h"
#include "executor/comm/groups.h"
#include "executor/weights/weights.h"

namespace tessera::testing_models {

/// Tied, biased Qwen2; 4 layers, 4 heads, 2 KV heads, an odd vocabulary.
ModelSpec qwen2();
/// Untied Llama whose 6 heads, 3 KV heads, ffn and vocabulary four ranks cut unevenly.
ModelSpec llama();
/// Untied Qwen3 with qk-norms.
ModelSpec qwen3();
/// qwen2 with a value head.
ModelSpec critic();
/// Untied Mixtral of four experts.
ModelSpec mixtral();
/// Qwen2-MoE of six experts, a shared one with its gate, and one plain layer.
ModelSpec qwen2_moe();
/// Qwen3-MoE of eight experts whose weights are normalised.
ModelSpec qwen3_moe();

ParallelLayout layout_of(const ModelSpec& model, int tp, int pp, int dp, int zero = 0);

/// A rank's role: weights (normal 0.2, from seed 7) and groups.
struct RoleOnRank {
  ParallelGroups groups;
  Weights weights;
};
std::unique_ptr<RoleOnRank> make_role(Communicator& world, const ModelSpec& model,
                                      const ParallelLayout& layout, DType dtype = DType::fp32);

/// Owns the tokens that the sequences view.
struct Tokens {
  std::vector<std::vector<std::int32_t>> prompts, responses;
  std::vector<TokenSequence> sequences() const;
  std::int64_t response_tokens() const;
};
Tokens random_tokens(int sequences, std::int64_t vocab, std::uint32_t seed);

/// Over T response tokens of the batch: sum of (a x + b x^2 + c entropy) / T * dp, with a per
/// token.
LossFunction quadratic_loss(const Tokens& tokens, int dp, bool entropy);

/// The whole model's tensor, cut as `weights` holds row `row`, in its memory order.
torch::Tensor slice_like(const Weights& weights, int row, const torch::Tensor& whole,
                         int outer_dim_of_whole);

/// max|a - b| / max|ref|, or max|a - b| where ref is zero.
double relative_error(const torch::Tensor& a, const torch::Tensor& ref);

}  // namespace tessera::testing_models
