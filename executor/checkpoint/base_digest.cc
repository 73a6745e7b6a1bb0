#include "executor/checkpoint/base_digest.h"

#include <cstddef>
#include <span>

#include "cost_models/spec/dtype.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "executor/checkpoint/model_folder.h"

namespace tessera {
namespace {

constexpr std::size_t kPieceBytes = 4096, kPieces = 4;

std::string described(const TensorView& tensor) {
  std::string text = tensor.name + ' ' + std::string(name_of(tensor.dtype));
  for (const std::int64_t size : tensor.shape) text += ' ' + std::to_string(size);
  const std::span<const std::byte> all = tensor.data;
  if (all.size() <= kPieces * kPieceBytes) return text + ' ' + checkpoint_digest(all);
  const std::size_t stride = (all.size() - kPieceBytes) / (kPieces - 1);
  for (std::size_t piece = 0; piece + 1 < kPieces; ++piece) {
    text += ' ' + checkpoint_digest(all.subspan(piece * stride, kPieceBytes));
  }
  return text + ' ' + checkpoint_digest(all.last(kPieceBytes));
}

}  // namespace

std::optional<std::string> base_digest(const std::filesystem::path& folder,
                                       const ParameterTable& table, Problems& problems) {
  const auto model = ModelFolder::open(folder, problems);
  if (!model) return std::nullopt;
  std::string text;
  for (const Parameter& row : table.rows) {
    const TensorView* const tensor = model->find(row.name);
    if (tensor != nullptr) text += described(*tensor) + '\n';
  }
  return checkpoint_digest(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace tessera
