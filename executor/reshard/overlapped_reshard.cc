#include "executor/reshard/overlapped_reshard.h"

#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

constexpr int kReadySlot = 1;  // of HostSignals

}  // namespace

void OverlappedReshard::begin() {
  since_start_ = Stopwatch();
  received_ = 0;
  marks_.assign(rounds_.rounds.size(), -1);
  await_tensors();
  follower_ = std::make_unique<Follower>([this](Follower& counter) { follow(counter); });
  ready_complete();
}

void OverlappedReshard::ready(int bucket) {
  TESSERA_CHECK(begun());
  marks_[static_cast<std::size_t>(bucket)] = site_.copies->mark_producer();
  awaited_[static_cast<std::size_t>(bucket)] = -1;
  follower_->raise(bucket + 1);
}

void OverlappedReshard::written(std::span<const int> tensors) {
  TESSERA_CHECK(begun());
  for (const int tensor : tensors) {
    for (const int bucket : std::exchange(buckets_of_[tensor], {})) {
      --awaited_[static_cast<std::size_t>(bucket)];
    }
  }
  ready_complete();
}

std::int64_t OverlappedReshard::finish() {
  TESSERA_CHECK(begun());
  for (std::size_t k = 0; k < awaited_.size(); ++k) {
    if (awaited_[k] >= 0) ready(static_cast<int>(k));
  }
  follower_->join();
  follower_.reset();
  path_.end();
  ++reshards_;
  return received_;
}

/// Which of this rank's tensors each bucket waits for.
void OverlappedReshard::await_tensors() {
  const int rank = site_.host->rank();
  buckets_of_.clear();
  awaited_.assign(rounds_.rounds.size(), 0);
  for (std::size_t k = 0; k < rounds_.rounds.size(); ++k) {
    for (const Transfer& transfer : rounds_.rounds[k].plan.transfers) {
      if (transfer.source != rank) continue;
      std::vector<int>& buckets = buckets_of_[transfer.tensor];
      if (!buckets.empty() && buckets.back() == static_cast<int>(k)) continue;
      buckets.push_back(static_cast<int>(k));
      ++awaited_[k];
    }
  }
}

/// Buckets leave in their order.
void OverlappedReshard::ready_complete() {
  for (std::size_t k = 0; k < awaited_.size() && awaited_[k] <= 0; ++k) {
    if (awaited_[k] == 0) ready(static_cast<int>(k));
  }
}

void OverlappedReshard::follow(Follower& counter) {
  const std::uint64_t before = reshards_ * rounds_.rounds.size();
  for (std::size_t k = 0; k < rounds_.rounds.size(); ++k) {
    if (!counter.await(static_cast<int>(k) + 1)) return;
    site_.copies->await_mark(marks_[k]);
    signals_.raise(kReadySlot, before + k + 1);
    signals_.await_all(kReadySlot, before + k + 1);
    if (k == 0) since_start_ = Stopwatch();
    received_ += path_.begin(k);
  }
}

}  // namespace tessera
