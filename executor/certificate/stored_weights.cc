#include "executor/certificate/stored_weights.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/families.h"
#include "cost_models/spec/model_spec.h"
#include "executor/checkpoint/tensor_box.h"

namespace tessera {
namespace {

constexpr const char* kMasterState = ".master/";  // of a role, before the tensor's name

/// The name of the embedding that is the head, too; empty where they are two.
std::string tied_embedding(const ModelSpec& model) {
  return model.tied_embeddings ? std::string(facts_of(model.family).tensors.embedding) : "";
}

/// Sizes of a box in memory order.
std::vector<std::int64_t> memory_shape(const Box& box, int outer_dim) {
  std::vector<std::int64_t> shape;
  for (int dim = 0; dim < box.rank; ++dim) {
    shape.push_back(box.dims[static_cast<std::size_t>(dim)].size());
  }
  if (box.rank > 0) {
    std::rotate(shape.begin(), shape.begin() + outer_dim, shape.begin() + outer_dim + 1);
  }
  return shape;
}

/// The saved pieces of one tensor; a Problem where they are not all of it, each element once.
StoredTensor tensor_of(const OpenCheckpoint& checkpoint, const std::string& state,
                       const Parameter& parameter, DType dtype, Problems& problems) {
  StoredTensor tensor{.dtype = dtype, .shape = parameter.shape, .parts = {}};
  const int outer_dim = std::max(parameter.split_dim, 0);
  const Box all = whole(parameter.shape);
  std::int64_t found = 0;
  bool fits = true;
  const auto saved = checkpoint.pieces.find(state);
  if (saved != checkpoint.pieces.end()) {
    for (const SavedPiece& piece : saved->second) {
      fits = fits && piece.box.rank == all.rank && intersect(piece.box, all) == piece.box &&
             piece.view->dtype == DType::fp32 &&
             piece.view->shape == memory_shape(piece.box, outer_dim);
      if (!fits) break;
      tensor.parts.push_back({piece.box, outer_dim, piece.view});
      found += volume(piece.box);
    }
  }
  if (!fits || found != volume(all)) {
    problems.push_back({.file = checkpoint.folder.string(),
                        .place = state,
                        .found = fits ? std::to_string(found) + " elements"
                                      : std::string("pieces of another shape"),
                        .expected = std::to_string(volume(all)) + ", as the run's model has"});
  }
  return tensor;
}

/// The box of a part in the order of dims that its file has.
Box in_file(const StoredPart& part, const Box& box) {
  Box made{.dims = {}, .rank = box.rank};
  std::size_t at = 0;
  const auto add = [&](int dim) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t origin = part.box.dims[d].lo;
    made.dims[at++] = {box.dims[d].lo - origin, box.dims[d].hi - origin};
  };
  if (box.rank > 0) add(part.outer_dim);
  for (int dim = 0; dim < box.rank; ++dim) {
    if (dim != part.outer_dim) add(dim);
  }
  return made;
}

}  // namespace

std::string in_words(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + "]";
}

std::int64_t StoredTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::int64_t StoredWeights::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum += tensor.elements() * size_of(tensor.dtype);
  return sum;
}

void read_rows(const StoredTensor& tensor, const StoredPart& part, const Box& box, DType type,
               std::vector<std::byte>& rows) {
  const std::int64_t count = volume(box);
  rows.resize(static_cast<std::size_t>(count * size_of(type)));
  Problems problems;
  // Dims come back into their order when the second goes in front of the outer one.
  TESSERA_CHECK(part.outer_dim <= 1);
  const int front = box.rank > 1 ? part.outer_dim : 0;
  if (tensor.dtype == part.view->dtype || tensor.dtype == type) {
    read_box(*part.view, in_file(part, box), front, rows.data(), type, problems);
  } else {
    std::vector<std::byte> own(static_cast<std::size_t>(count * size_of(tensor.dtype)));
    read_box(*part.view, in_file(part, box), front, own.data(), tensor.dtype, problems);
    convert_elements(own.data(), tensor.dtype, rows.data(), type, count);
  }
  TESSERA_CHECK(problems.empty());  // types convert and boxes lie inside: looked at before
}

bool is_checkpoint(const std::filesystem::path& folder) {
  return std::filesystem::is_regular_file(folder / kManifestName);
}

std::optional<StoredWeights> open_model_weights(const std::filesystem::path& folder,
                                                Problems& problems) {
  StoredWeights made;
  made.path = folder;
  made.folder = ModelFolder::open(folder, problems);
  if (!made.folder) return std::nullopt;
  for (const auto& [name, view] : made.folder->tensors()) {
    if (view.shape.size() > static_cast<std::size_t>(kMaxTensorRank)) {
      problems.push_back({.file = view.file,
                          .place = name,
                          .found = std::to_string(view.shape.size()) + " dims",
                          .expected = "at most " + std::to_string(kMaxTensorRank)});
      return std::nullopt;
    }
    made.tensors[name] = {view.dtype, view.shape, {{whole(view.shape), 0, &view}}};
  }
  Problems unknown;  // a family that is not known has its head in a file of its own, or is told
  const auto model = read_model_spec(folder, unknown);
  if (model) made.tied_to = tied_embedding(*model);
  return made;
}

std::optional<StoredWeights> open_checkpoint_weights(const std::filesystem::path& folder,
                                                     const std::string& role,
                                                     const ParameterTable& table,
                                                     Problems& problems) {
  const std::size_t before = problems.size();
  StoredWeights made;
  made.path = folder;
  made.checkpoint = open_checkpoint(folder, problems);
  if (!made.checkpoint) return std::nullopt;
  const auto saved = made.checkpoint->manifest.roles.find(role);
  if (saved == made.checkpoint->manifest.roles.end()) {
    problems.push_back({.file = (folder / kManifestName).string(),
                        .place = "roles",
                        .found = "no " + role,
                        .expected = "a role that the run trained"});
    return std::nullopt;
  }
  made.tied_to = tied_embedding(table.model);
  for (const Parameter& parameter : table.rows) {
    made.tensors[parameter.name] = tensor_of(*made.checkpoint, role + kMasterState + parameter.name,
                                             parameter, saved->second.dtype, problems);
  }
  if (problems.size() != before) return std::nullopt;
  return made;
}

}  // namespace tessera
