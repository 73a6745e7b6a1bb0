// Random weights for a config: a Hugging Face folder that runs and transformers load.
//
// Matrices are normal(0, initializer_range) as transformers initialises them, norms one, biases
// zero. Element k of a tensor depends on (seed, tensor name, k) only: not on order, shards or type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/parameter_table.h"

namespace tessera {

struct InitModelOptions {
  std::uint64_t seed = 0;
  std::optional<DType> dtype;    // of the weights; nothing = the config's
  bool digit_tokenizer = false;  // write the tokenizer of the digit tasks beside them
  bool weights = true;           // false: the folder is for a run that draws them itself
  std::int64_t max_shard_bytes = std::int64_t{5'000'000'000};
  int threads = 0;  // that draw; 0 = one a core. The weights do not depend on it
};

/// Writes `folder` (which must not exist) for an HF folder, its config.json or a preset's name.
/// Tokenizer files beside the config are copied unless the digit tokenizer is asked for; with it
/// the config's eos_token_id and pad_token_id become that tokenizer's, and a vocabulary smaller
/// than its 16 tokens is refused. False when anything was appended to `problems`.
bool init_model(const std::filesystem::path& config, const std::filesystem::path& folder,
                const InitModelOptions& options, Problems& problems);

/// The deviation of the matrices of a folder's config; nullopt after a Problem.
std::optional<double> initializer_range_of(const std::filesystem::path& folder, Problems& problems);

/// Elements first, first + 1, ... of one tensor as fp32.
void initial_values(const Parameter& parameter, double initializer_range, std::uint64_t seed,
                    std::int64_t first, std::span<float> values);

}  // namespace tessera
