// A Hugging Face model folder: its tensors in, a new folder out.
//
// Read: model.safetensors, or the shards that model.safetensors.index.json lists. Pickle files
// (.bin, .pt, .pth) are never opened and file names never leave the folder; the one exception is
// the hub cache, where snapshots/REVISION links into the blobs folder beside it. Readers: any
// thread; writers: one thread (of one process).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/parameter_table.h"
#include "executor/checkpoint/safetensors.h"

namespace tessera {

class ModelFolder {
 public:
  /// Maps every safetensors file of `folder` and checks it and the index; nullopt when anything
  /// was appended to `problems`.
  static std::optional<ModelFolder> open(const std::filesystem::path& folder, Problems& problems);

  /// The tensor of that checkpoint name, or null. Views live as long as this object.
  const TensorView* find(const std::string& name) const;
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, TensorView> tensors_;
};

/// Appends a Problem for every tensor of `table` that is missing or has another shape, but for a
/// missing value head, which is drawn; and for a head that is not the embedding where the model
/// ties them: transformers 5 then keeps both, which a tied model cannot. True when none was
/// appended.
bool check_tensors(const ModelFolder& folder, const ParameterTable& table, Problems& problems);

/// Tensors of the folder that the model has not, but for a tied head and the rotary inv_freq
/// buffers of old checkpoints; by name.
std::vector<std::string> unknown_tensors(const ModelFolder& folder, const ParameterTable& table);

/// Fills `destination` with tensor `index` of the list given to write_model_folder; false with a
/// Problem stops the writing.
using TensorSource =
    std::function<bool(std::size_t index, std::span<std::byte> destination, Problems& problems)>;

struct ModelFolderContents {
  std::string config_json;               // the original; its dtype becomes that of the tensors
  std::vector<TensorSpec> tensors;       // full tensors, in the order in which they are asked for
  std::filesystem::path tokenizer_from;  // folder whose tokenizer files are copied; may be empty
  std::map<std::string, std::string> extra_files;  // by name: what else belongs into the folder
  std::int64_t max_shard_bytes = std::int64_t{5'000'000'000};  // transformers' default
  bool weights = true;  // false: none are written, and the config states their type all the same
};

/// Writes `folder` (which must not exist) so that transformers loads it: config.json,
/// model.safetensors or model-0000i-of-0000n.safetensors with their index, tokenizer files. The
/// folder appears only when complete. `source` is asked for every tensor once, in order. False
/// with Problems when anything fails; nothing is left behind then.
bool write_model_folder(const std::filesystem::path& folder, const ModelFolderContents& contents,
                        const TensorSource& source, Problems& problems);

/// One file of tensors, for which `source` is asked from number `first` on.
bool write_tensor_file(const std::filesystem::path& file, std::span<const TensorSpec> tensors,
                       std::size_t first, const TensorSource& source, Problems& problems);

/// Files by name, each in one go.
bool write_extra_files(const std::filesystem::path& folder,
                       const std::map<std::string, std::string>& files, Problems& problems);

/// Tokenizer, generation and chat-template files of `from` into `to`; absent ones are skipped.
bool copy_tokenizer_files(const std::filesystem::path& from, const std::filesystem::path& to,
                          Problems& problems);

}  // namespace tessera
