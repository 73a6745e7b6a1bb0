// One rank's state in a checkpoint: pieces of states under names that say what they are.
//
// A piece is a box of a tensor of the model, in the order in which the rank's memory has it:
// "actor.exp_avg/model.layers.0.mlp.up_proj.weight[0:16,0:64]" is rows 0 to 16 and columns 0 to 64
// of that tensor's first moment. Tensors that TP cuts along their inputs (o_proj, down_proj) lie
// with that dim first, so that a piece's shape is that of its box with one dim moved to the front.
// A large state is cut between tensors into parts, each in a file of its own, since one thread
// writes slower than a disk or a tmpfs takes. A header's metadata has the xxh3 of every tensor,
// which is made while the tensor is written, and how many parts there are; a file without that
// number, as older runs wrote it, is its rank's only one. Free functions and plain values; a file
// that is open may be read by any number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/box.h"
#include "executor/checkpoint/run_checkpoint.h"
#include "executor/checkpoint/safetensors.h"

namespace tessera {

std::string piece_name(std::string_view state, const Box& box);
/// The state's name and the box; nullopt for tensors that are no pieces.
struct PieceName {
  std::string state;
  Box box;
};
std::optional<PieceName> parse_piece_name(std::string_view name);

/// A tensor that is to be written; its bytes stay as they are until it is.
struct StateTensor {
  TensorSpec spec;
  const std::byte* data = nullptr;
};

/// The most parts of a rank's state, and the bytes below which it is not cut further.
inline constexpr int kMostParts = 4;
inline constexpr std::int64_t kLeastPartBytes = std::int64_t{256} << 20;

/// Writes a rank's state with the digests of its tensors into `folder`, in parts of nearly equal
/// bytes, by a thread each. A part appears, flushed, under its rank_file_name when it is whole.
/// Wider types come first.
bool write_state(const std::filesystem::path& folder, int rank,
                 const std::vector<StateTensor>& tensors, std::int64_t least_part_bytes,
                 Problems& problems);

/// Asked before a part is opened: the name of its file, its number from 0, and of how many (1 until
/// the first part has told). False with a Problem: it is not there.
using PartIsThere =
    std::function<bool(const std::string& name, std::size_t part, std::size_t parts)>;

/// The files of a rank's state in `folder`, by part; nullopt with a Problem where one is not there
/// or is not as it was written.
std::optional<std::vector<SafetensorsFile>> open_parts(const std::filesystem::path& folder,
                                                       int rank, const PartIsThere& is_there,
                                                       Problems& problems);

/// A piece of a checkpoint that is open.
struct SavedPiece {
  Box box;
  const TensorView* view = nullptr;
  std::string digest;  // as it was written
};

/// All files of a checkpoint, mapped; nothing but headers is read before pieces are.
struct OpenCheckpoint {
  std::filesystem::path folder;
  CheckpointManifest manifest;
  std::vector<std::vector<SafetensorsFile>> files;        // by rank of the run that wrote, by part
  std::map<std::string, std::vector<SavedPiece>> pieces;  // by state
};

/// nullopt where the manifest or a header is not as it was written, or lists not every part.
std::optional<OpenCheckpoint> open_checkpoint(const std::filesystem::path& folder,
                                              Problems& problems);

/// Whether the tensor's bytes are those that were written; a Problem where not.
bool check_digest(const TensorView& view, const std::string& digest, Problems& problems);

}  // namespace tessera
