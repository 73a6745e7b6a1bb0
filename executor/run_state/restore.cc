#include "executor/run_state/restore.h"

#include <ATen/Parallel.h>

#include <map>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/run_state/snapshot.h"
#include "executor/run_state/state_pieces.h"
#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

using torch::Tensor;

/// `box` of what `whole` holds, out of a tensor in memory order.
Tensor part(Tensor tensor, const Box& whole, const Box& box, int outer_dim) {
  tensor = tensor.movedim(0, outer_dim);
  for (int dim = 0; dim < box.rank; ++dim) {
    const auto at = static_cast<std::size_t>(dim);
    tensor = tensor.narrow(dim, box.dims[at].lo - whole.dims[at].lo, box.dims[at].size());
  }
  return tensor.movedim(outer_dim, 0);
}

/// A saved piece, and the places that parts of it go to.
struct Read {
  const SavedPiece* piece = nullptr;
  int outer_dim = 0;
  struct Copy {
    Box box;
    Tensor target;
  };
  std::vector<Copy> copies;
};

/// Views a piece's bytes, which are aligned as safetensors files are.
Tensor view_of(const SavedPiece& piece) {
  return torch::from_blob(const_cast<std::byte*>(piece.view->data.data()), piece.view->shape,
                          torch::kFloat32);
}

bool fits(const SavedPiece& piece, int outer_dim) {
  const StatePiece as{.row = 0, .box = piece.box, .outer_dim = outer_dim};
  return piece.view->dtype == DType::fp32 && piece.view->shape == as.memory_shape();
}

/// Adds to `reads` what fills `held` of one state; Problems where that is not all there.
void find_reads(const OpenCheckpoint& checkpoint, const std::string& state, const StatePiece& held,
                const Tensor& flat, std::map<const SavedPiece*, Read>& reads, Problems& problems) {
  const Tensor target = flat.narrow(0, held.shard, held.count()).view(held.memory_shape());
  std::int64_t found = 0;
  const auto saved = checkpoint.pieces.find(state);
  if (saved != checkpoint.pieces.end()) {
    for (const SavedPiece& piece : saved->second) {
      if (piece.box.rank != held.box.rank || !fits(piece, held.outer_dim)) continue;
      const Box common = intersect(piece.box, held.box);
      if (volume(common) == 0) continue;
      found += volume(common);
      Read& read = reads[&piece];
      read.piece = &piece;
      read.outer_dim = held.outer_dim;
      read.copies.push_back({common, part(target, held.box, common, held.outer_dim)});
    }
  }
  if (found == held.count()) return;
  problems.push_back(
      {.file = checkpoint.folder.string(),
       .place = state,
       .found = std::to_string(found) + " of the elements in " + piece_name("", held.box),
       .expected = std::to_string(held.count()) + ", as the plan's model has"});
}

/// Every piece is checked and then copied from, by one thread.
void read_all(const std::vector<Read>& reads, bool parallel, Problems& problems) {
  std::vector<Problems> found(reads.size());
  const auto read_some = [&](std::int64_t begin, std::int64_t end) {
    const torch::NoGradGuard no_grad;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Read& read = reads[i];
      if (!check_digest(*read.piece->view, read.piece->digest, found[i])) continue;
      const Tensor source = view_of(*read.piece);
      for (const Read::Copy& copy : read.copies) {
        Tensor target = copy.target;
        target.copy_(part(source, read.piece->box, copy.box, read.outer_dim));
      }
    }
  };
  const auto count = static_cast<std::int64_t>(reads.size());
  share_work(count, 1, parallel ? at::get_num_threads() : 1, read_some);
  for (Problems& each : found) problems.insert(problems.end(), each.begin(), each.end());
}

}  // namespace

void restore_role(const OpenCheckpoint& checkpoint, const std::string& role, const Weights& weights,
                  Trainer& trainer, Problems& problems) {
  const torch::NoGradGuard no_grad;
  trainer.wake();
  const OptimizerState& state = trainer.optimizer().state();
  const auto entry = checkpoint.manifest.roles.find(role);
  if (entry == checkpoint.manifest.roles.end()) {
    problems.push_back({.file = (checkpoint.folder / kManifestName).string(),
                        .place = "roles",
                        .found = "no " + role,
                        .expected = "every role that the plan trains"});
  } else {
    std::map<const SavedPiece*, Read> by_piece;
    for (const StatePiece& held : held_pieces(weights, trainer.optimizer().map())) {
      const std::string& name = weights.table.rows[static_cast<std::size_t>(held.row)].name;
      for (const auto& [kind, flat] :
           {std::pair(kMaster, &state.master), std::pair(kExpAvg, &state.exp_avg),
            std::pair(kExpAvgSq, &state.exp_avg_sq)}) {
        find_reads(checkpoint, state_name(role, kind, name), held, flat->detach(), by_piece,
                   problems);
      }
    }
    std::vector<Read> reads;
    for (auto& [piece, read] : by_piece) reads.push_back(std::move(read));
    read_all(reads, state.master.is_cpu(), problems);
  }
  const std::int64_t steps =
      entry == checkpoint.manifest.roles.end() ? 0 : entry->second.optimizer_steps;
  trainer.state_restored(steps);
}

std::vector<Tensor> saved_generators(const OpenCheckpoint& checkpoint, int rank,
                                     torch::Device device, Problems& problems) {
  std::vector<Tensor> states;
  if (rank >= static_cast<int>(checkpoint.files.size())) return states;
  std::vector<const char*> wanted{"generator.cpu"};
  if (device.is_cuda()) wanted.push_back("generator.cuda");
  for (const char* name : wanted) {
    for (const SafetensorsFile& file : checkpoint.files[static_cast<std::size_t>(rank)]) {
      for (const TensorView& view : file.tensors) {
        if (view.name != name || !check_digest(view, file.metadata.at(name), problems)) continue;
        states.push_back(
            torch::from_blob(const_cast<std::byte*>(view.data.data()), view.shape, torch::kUInt8)
                .clone());
      }
    }
  }
  if (states.size() != wanted.size()) states.clear();
  return states;
}

}  // namespace tessera
