#include <atomic>
#include <future>

#include "cost_models/documents/check.h"
#include "executor/certificate/slice_pieces.h"
#include "executor/vllm/verify/weight_holder.h"

namespace tessera {
namespace {

using kernels::DigestRead;

constexpr int kThreads = 4;
constexpr const char* kHead = "lm_head.weight";

/// What is read at once of the piece `index` of a list.
struct Chunk {
  std::size_t index = 0;
  Box box;
};

std::vector<Chunk> chunks_of(std::span<const HeldPiece> pieces) {
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Box& box = pieces[i].box;
    const Interval rows = box.dims[0];
    const std::int64_t step = std::max<std::int64_t>(1, kReadAtOnce / (volume(box) / rows.size()));
    for (std::int64_t lo = rows.lo; lo < rows.hi; lo += step) {
      chunks.push_back({i, restricted(box, 0, {lo, std::min(lo + step, rows.hi)})});
    }
  }
  return chunks;
}

/// The weights of a folder beside a table.
class StoredRows {
 public:
  StoredRows(const StoredWeights& weights, const ParameterTable& table, std::optional<DType> as)
      : weights_(weights), table_(table), as_(as) {}

  const StoredTensor* find(int row) const {
    const std::string& name = table_.rows[static_cast<std::size_t>(row)].name;
    auto found = weights_.tensors.find(name);
    if (found == weights_.tensors.end() && name == kHead) {
      found = weights_.tensors.find(weights_.tied_to);
    }
    return found == weights_.tensors.end() ? nullptr : &found->second;
  }
  DType type_of(const StoredTensor& tensor) const {
    return as_ && floats(tensor.dtype) ? *as_ : tensor.dtype;
  }

  std::vector<std::uint64_t> digests(std::span<const HeldPiece> pieces) const {
    const std::vector<Chunk> chunks = chunks_of(pieces);
    std::vector<std::uint64_t> parts(chunks.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      std::vector<std::byte> memory;
      for (std::size_t i = next++; i < chunks.size(); i = next++) {
        parts[i] = digest(pieces[chunks[i].index].row, chunks[i].box, memory);
      }
    };
    std::vector<std::future<void>> others;
    for (int i = 1; i < kThreads; ++i) others.push_back(std::async(std::launch::async, work));
    work();
    for (std::future<void>& other : others) other.get();
    std::vector<std::uint64_t> sums(pieces.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) sums[chunks[i].index] += parts[i];
    return sums;
  }

 private:
  std::uint64_t digest(int row, const Box& box, std::vector<std::byte>& memory) const {
    const StoredTensor& tensor = *find(row);
    const DType type = type_of(tensor);
    TESSERA_CHECK(floats(type));
    const DigestRead read = size_of(type) == 2 ? DigestRead::bits16 : DigestRead::bits32;
    const std::uint64_t seed = digest_seed(table_.rows[static_cast<std::size_t>(row)].name);
    std::uint64_t sum = 0;
    for (const StoredPart& part : tensor.parts) {
      const Box common = intersect(part.box, box);
      if (volume(common) == 0) continue;
      read_rows(tensor, part, common, type, memory);
      const HeldPart held{.box = common, .data = memory.data(), .element_bytes = size_of(type)};
      for (const kernels::DigestPiece& piece : slice_pieces(held, common, tensor.shape, seed)) {
        sum += kernels::piece_digest(piece, read);
      }
    }
    return sum;
  }

  const StoredWeights& weights_;
  const ParameterTable& table_;
  std::optional<DType> as_;
};

}  // namespace

WeightHolder stored_holder(const StoredWeights& weights, const ParameterTable& table,
                           std::optional<DType> as) {
  WeightHolder made{.name = weights.path.string(), .tensors = {}, .others = {}, .digests = {}};
  const StoredRows rows(weights, table, as);
  for (int row = 0; row < static_cast<int>(table.rows.size()); ++row) {
    HeldTensor& tensor = made.tensors.emplace_back();
    const StoredTensor* const stored = rows.find(row);
    if (stored == nullptr) continue;
    tensor.held = true;
    tensor.fits = stored->shape == table.rows[static_cast<std::size_t>(row)].shape;
    tensor.shape = in_words(stored->shape);
    tensor.type = name_of(rows.type_of(*stored));
    tensor.boxes = {whole(stored->shape)};
  }
  for (const auto& [name, tensor] : weights.tensors) {
    const bool tied = name == kHead && !weights.tied_to.empty();
    if (!table.find(name) && !tied && !name.ends_with("rotary_emb.inv_freq")) {
      made.others.push_back(name);
    }
  }
  made.digests = [rows](std::span<const HeldPiece> pieces) { return rows.digests(pieces); };
  return made;
}

}  // namespace tessera
