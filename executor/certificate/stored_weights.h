// The weights that a folder holds, whatever their files: a Hugging Face folder of safetensors, or a
// checkpoint of a run.
//
// A checkpoint holds master weights in fp32 as pieces by rank; its weights are those in the type
// that the run trained. Plain values over mapped files; any thread may read them. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/parameter_table.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/state_file.h"

namespace tessera {

/// A box of a tensor in a file, with `outer_dim` outermost and the others in their order.
struct StoredPart {
  Box box;
  int outer_dim = 0;
  const TensorView* view = nullptr;
};

struct StoredTensor {
  DType dtype = DType::bf16;  // of the weights; a checkpoint's parts are fp32
  std::vector<std::int64_t> shape;
  std::vector<StoredPart> parts;  // each element once

  std::int64_t elements() const;
};

struct StoredWeights {
  std::filesystem::path path;
  std::map<std::string, StoredTensor> tensors;  // by name in a Hugging Face checkpoint
  std::string tied_to;  // the embedding's name where it stands for an lm_head.weight; else empty

  std::optional<ModelFolder> folder;  // whose files the parts lie in: one of these
  std::optional<OpenCheckpoint> checkpoint;

  std::int64_t bytes() const;
};

/// Elements that are read into memory at once.
inline constexpr std::int64_t kReadAtOnce = std::int64_t{1} << 20;

/// Elements of `box` in row-major order of the tensor, in the tensor's type and then as `type`.
/// Precondition: the part holds the box, and types convert.
void read_rows(const StoredTensor& tensor, const StoredPart& part, const Box& box, DType type,
               std::vector<std::byte>& rows);

/// "[64, 16]".
std::string in_words(const std::vector<std::int64_t>& shape);

/// Whether a number of that type can be rounded to another such type.
constexpr bool floats(DType type) {
  return type == DType::fp32 || type == DType::bf16 || type == DType::fp16;
}

/// True of the folder of a checkpoint of a run.
bool is_checkpoint(const std::filesystem::path& folder);

/// A Hugging Face folder; nullopt with Problems.
std::optional<StoredWeights> open_model_weights(const std::filesystem::path& folder,
                                                Problems& problems);

/// The weights of a checkpoint's role ("actor") with this table, which says how its parts lie.
/// nullopt with Problems: tensors that are missing, files that are not as they were written.
std::optional<StoredWeights> open_checkpoint_weights(const std::filesystem::path& folder,
                                                     const std::string& role,
                                                     const ParameterTable& table,
                                                     Problems& problems);

}  // namespace tessera
