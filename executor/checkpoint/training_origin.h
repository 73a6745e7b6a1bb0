// What the training of exported weights has consumed: tessera_training.json of a Hugging Face
// folder.
//
// A run that begins with such weights draws other numbers and takes the prompts that follow, unless
// its file states a seed. Plain values; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "executor/checkpoint/run_checkpoint.h"

namespace tessera {

inline constexpr const char* kTrainingOriginName = "tessera_training.json";

struct TrainingOrigin {
  std::int64_t seed = 0;     // of the run that trained the weights (trainer.seed)
  std::int64_t steps = 0;    // that it had finished
  std::int64_t prompts = 0;  // position in the epochs of `data` of the prompt that it took next
  CheckpointData data;
  bool operator==(const TrainingOrigin&) const = default;
};

/// The file's text.
std::string to_json(const TrainingOrigin& origin);
/// Of the weights in `folder`; nullopt where it has no such file, or with Problems.
std::optional<TrainingOrigin> read_training_origin(const std::filesystem::path& folder,
                                                   Problems& problems);

/// The seed of a run that goes on with these weights and states none, below 2^32: another one after
/// each export.
std::int64_t next_seed(const TrainingOrigin& origin);
/// Whether a run over `data` goes on where the training of the weights has ended.
bool continues(const TrainingOrigin& origin, const CheckpointData& data);

}  // namespace tessera
