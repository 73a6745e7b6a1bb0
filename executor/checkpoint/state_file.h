// One rank's file of a checkpoint: pieces of states under names that say what they are.
//
// A piece is a box of a tensor of the model, in the order in which the rank's memory has it:
// "actor.exp_avg/model.layers.0.mlp.up_proj.weight[0:16,0:64]" is rows 0 to 16 and columns 0 to 64
// of that tensor's first moment. Tensors that TP cuts along their inputs (o_proj, down_proj) lie
// with that dim first, so that a piece's shape is that of its box with one dim moved to the front.
// The header's metadata has the xxh3 of every tensor. Free functions and plain values; a file that
// is open may be read by any number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
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

/// Writes a rank's file with the digests of its tensors, flushed. Wider types come first.
bool write_state_file(const std::filesystem::path& file, const std::vector<StateTensor>& tensors,
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
  std::vector<SafetensorsFile> files;                     // by rank of the run that wrote them
  std::map<std::string, std::vector<SavedPiece>> pieces;  // by state
};

/// nullopt where the manifest or a header is not as it was written, with every Problem.
std::optional<OpenCheckpoint> open_checkpoint(const std::filesystem::path& folder,
                                              Problems& problems);

/// Whether the tensor's bytes are those that were written; a Problem where not.
bool check_digest(const TensorView& view, const std::string& digest, Problems& problems);

}  // namespace tessera
