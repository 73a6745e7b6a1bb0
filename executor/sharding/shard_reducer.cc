#include "executor/sharding/shard_reducer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "executor/tensor/sum_into.h"

namespace tessera {
namespace {

/// Pieces begin at 16 bytes, so that the sum reads them in words of that size.
constexpr std::int64_t kPieceAlignment = 4;

std::int64_t aligned(std::int64_t count) {
  return (count + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

}  // namespace

ShardReducer::ShardReducer(std::unique_ptr<PeerMemory> gradients, std::int64_t staged_elements)
    : gradients_(std::move(gradients)) {
  const std::int64_t peers = gradients_->ranks() - 1;
  const std::int64_t each =
      std::min(staged_elements / std::max<std::int64_t>(peers, 1), own().numel());
  staged_ = torch::empty({peers, aligned(each)}, own().options());
}

void ShardReducer::reduce(const ShardMap& map, const ShardBucket& bucket,
                          const torch::Tensor& memory, const torch::Tensor& shards,
                          bool accumulate) {
  TORCH_CHECK(memory.is_alias_of(own()), "gradients lie where peers cannot read them");
  const std::int64_t offset = memory.storage_offset() - own().storage_offset();
  gradients_->meet();  // everybody's gradients are final
  for (const std::vector<Piece>& round : rounds(map, bucket)) {
    fetch(round, offset);
    sum(round, memory, shards, accumulate);
  }
  gradients_->meet();  // everybody has read this rank's
}

/// This rank's elements of the bucket, cut where the staged copies are full.
std::vector<std::vector<ShardReducer::Piece>> ShardReducer::rounds(
    const ShardMap& map, const ShardBucket& bucket) const {
  const std::map<int, std::int64_t> places = places_of(bucket);
  const std::int64_t room = staged_.size(1);
  std::vector<std::vector<Piece>> rounds;
  std::int64_t used = room;
  for (const ShardSegment& segment : map.own(bucket)) {
    for (std::int64_t done = 0; done < segment.count;) {
      if (used >= room) {
        rounds.emplace_back();
        used = 0;
      }
      const std::int64_t count = std::min(segment.count - done, room - used);
      rounds.back().push_back({.memory = places.at(segment.row) + segment.first + done,
                               .shard = segment.shard + done,
                               .staged = used,
                               .count = count});
      used += aligned(count);
      done += count;
    }
  }
  return rounds;
}

/// Ranks begin with different peers, so that nobody's links are asked by all at once.
void ShardReducer::fetch(const std::vector<Piece>& round, std::int64_t offset) {
  for (int next = 1; next < gradients_->ranks(); ++next) {
    const int peer = (gradients_->rank() + next) % gradients_->ranks();
    const auto* from = reinterpret_cast<const float*>(gradients_->at(peer)) + offset;
    auto* const to = staged_[next - 1].mutable_data_ptr<float>();
    CopyBatch batch{.peer = peer};
    for (const Piece& piece : round) {
      batch.add(to + piece.staged, from + piece.memory,
                static_cast<std::size_t>(piece.count) * sizeof(float));
    }
    gradients_->copy(batch);
  }
}

void ShardReducer::sum(const std::vector<Piece>& round, const torch::Tensor& memory,
                       const torch::Tensor& shards, bool accumulate) const {
  const int ranks = gradients_->ranks();
  for (const Piece& piece : round) {
    std::vector<torch::Tensor> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      const int next = (rank - gradients_->rank() + ranks) % ranks;
      parts.push_back(next == 0 ? memory.narrow(0, piece.memory, piece.count)
                                : staged_[next - 1].narrow(0, piece.staged, piece.count));
    }
    sum_into(shards.narrow(0, piece.shard, piece.count), parts, accumulate);
  }
}

}  // namespace tessera
