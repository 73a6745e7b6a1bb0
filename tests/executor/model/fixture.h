// Ranks as threads around the tiny fixtures of tests/fixtures/models (or TESSERA_FIXTURES_DIR).
#pragma once

#include "executor/tensor/torch.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/comm/groups.h"
#include "executor/model/decoder.h"
#include "executor/weights/weights.h"

namespace tessera::testing {

std::filesystem::path fixtures_dir();
std::filesystem::path golden_dir();

struct Fixture {
  std::filesystem::path folder;
  ModelSpec spec;
  std::vector<std::vector<std::int64_t>> sequences;
  torch::Tensor logits;  // [sequences * tokens, vocab], as transformers computed them
  /// Of models with experts: what scripts/make_fixtures.py says of gradients.safetensors.
  std::map<std::string, torch::Tensor> gradients;
  std::map<std::string, torch::Tensor> replay;  // likewise of replay.safetensors
};
Fixture read_fixture(const std::string& name);

/// A model of random weights where no fixture has the wanted shape.
ModelSpec small_model(std::int64_t query_heads, std::int64_t kv_heads, std::int64_t layers = 2);

struct Degrees {
  int tp = 1, pp = 1, dp = 1, ep = 1;
  int etp = 0;  // parts of each expert; 0: as many as tp
  bool sequence = false;
};
ParallelLayout layout_of(const ModelSpec& spec, Degrees degrees);

/// Runs fn on every rank of a role of that layout, with groups over threads.
using RankBody = std::function<void(const ParallelLayout&, const ParallelGroups&)>;
void on_ranks(const ModelSpec& spec, Degrees degrees, const RankBody& fn);

/// Weights of the fixture's folder, or drawn from a seed (norms and biases too) when it is empty.
Weights loaded(const ModelSpec& spec, const ParallelLayout& layout, const ParallelGroups& groups,
               const std::filesystem::path& folder, DType dtype = DType::fp32);

/// Final hidden states on the last stage; elsewhere the stage's own output. Activations travel
/// through the pipeline group.
torch::Tensor pipeline_forward(const Weights& weights, const ParallelGroups& groups,
                               const PackedTokens& tokens);

/// x of stage `from` arrives in x of stage `to`. Every stage calls it.
void pass_on(const ParallelGroups& groups, const torch::Tensor& x, int from, int to);

/// max|a - b| / max|b|; max|a - b| where b is zero, as of an expert that no token chose.
double relative_error(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace tessera::testing
