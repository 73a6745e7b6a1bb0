#include "executor/transfers/peer_reads.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "executor/arena/byte_address.h"
#include "executor/transfers/pull_traffic.h"

namespace tessera {
namespace {

constexpr int kHere = -1;     // peer of a CopyBatch of this rank
constexpr int kStepSlot = 2;  // of HostSignals

/// Threads meet where copies are done when they return.
class HostBarrier final : public StreamBarrier {
 public:
  explicit HostBarrier(HostSignals& signals) : signals_(signals) {}
  void meet(void*) override {
    signals_.raise(kStepSlot, ++met_);
    signals_.await_all(kStepSlot, met_);
  }

 private:
  HostSignals& signals_;
  std::uint64_t met_ = 0;
};

/// nullptr where reads go together, as those of a reshard do that finds out what moves.
std::unique_ptr<StreamBarrier> step_barrier(const ReshardSite& site, HostSignals& signals,
                                            const WeightReshardOptions& options) {
  PullOrder order = options.pulls;
  if (order == PullOrder::automatic) {
    order = site.make_barrier ? PullOrder::in_steps : PullOrder::together;
  }
  if (order == PullOrder::together || options.incremental) return nullptr;
  if (site.block == nullptr || site.host->size() == 1 || !signals.usable()) return nullptr;
  return site.make_barrier ? site.make_barrier() : std::make_unique<HostBarrier>(signals);
}

/// Counts the copies out of peers' memory.
std::int64_t bytes_of(std::span<const CopyBatch> batches) {
  std::size_t bytes = 0;
  for (const CopyBatch& batch : batches) {
    if (batch.peer == kHere) continue;
    bytes = std::accumulate(batch.bytes.begin(), batch.bytes.end(), bytes);
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

PeerReads::PeerReads(const PlacedReshard& plan, const ReshardSite& site, HostSignals& signals,
                     const WeightReshardOptions& options)
    : plan_(plan),
      site_(site),
      signals_(signals),
      copy_bytes_(options.copy_bytes),
      rank_(site.host->rank()),
      barrier_(step_barrier(site, signals, options)) {}

void PeerReads::add(CopyBatch& batch, const Pull& pull, const RoundMemory& memory) const {
  const std::byte* from =
      pull.peer == rank_ ? at(memory.from, pull.from) : memory.peers->at(pull.peer) + pull.from;
  std::byte* to = at(memory.to, pull.to);
  if (from == to) return;  // the layouts share this storage
  const std::int64_t most = copy_bytes_ > 0 ? copy_bytes_ : pull.bytes;
  for (std::int64_t done = 0; done < pull.bytes; done += most) {
    batch.add(to + done, from + done, static_cast<std::size_t>(std::min(most, pull.bytes - done)));
  }
}

std::vector<CopyBatch> PeerReads::batches_of(const ReshardRound& round, const RoundMemory& memory,
                                             const std::function<bool(int)>& wanted) const {
  std::vector<Pull> chosen;
  for (const Pull& pull : round.pulls) {
    if (reads(pull.peer) && wanted(pull.transfer)) chosen.push_back(pull);
  }
  std::vector<CopyBatch> batches;
  for (const Pull& pull : joined(chosen)) {
    const int peer = pull.peer == rank_ ? kHere : pull.peer;
    if (batches.empty() || batches.back().peer != peer) batches.push_back({.peer = peer});
    add(batches.back(), pull, memory);
  }
  return batches;
}

/// This rank's part of the round's steps: of every peer's pulls as many bytes as the step has.
PeerReads::Steps PeerReads::steps_of(const ReshardRound& round, const RoundMemory& memory) const {
  std::map<int, std::vector<Pull>> left;  // by peer
  for (const Pull& pull : joined(round.pulls)) left[pull.peer].push_back(pull);
  Steps made;
  CopyBatch& kept = made.kept.emplace_back(CopyBatch{.peer = kHere});
  for (const Pull& pull : left[rank_]) add(kept, pull, memory);
  std::map<int, std::size_t> next;
  const PullTraffic traffic = traffic_of(round.plan, plan_.tensors, site_.host->size());
  for (const PullStep& step : matched_steps(traffic, kPullQuantum)) {
    const int peer = step.source[static_cast<std::size_t>(rank_)];
    std::int64_t bytes = step.moved[static_cast<std::size_t>(rank_)];
    CopyBatch& batch = made.steps.emplace_back(CopyBatch{.peer = std::max(peer, 0)});
    while (bytes > 0) {
      Pull& pull = left.at(peer).at(next[peer]);
      const std::int64_t part = std::min(bytes, pull.bytes);
      add(batch, {peer, pull.transfer, pull.from, pull.to, part}, memory);
      pull.from += part, pull.to += part, pull.bytes -= part, bytes -= part;
      if (pull.bytes == 0) ++next[peer];
    }
  }
  return made;
}

std::int64_t PeerReads::start(const ReshardRounds& rounds, std::size_t k,
                              const RoundMemory& memory) {
  const ReshardRound& round = rounds.rounds[k];
  if (barrier_ != nullptr) {
    steps_.resize(rounds.rounds.size());
    if (!steps_[k]) steps_[k] = steps_of(round, memory);
    site_.copies->start_in_steps(steps_[k]->steps, *barrier_);
    site_.copies->start(steps_[k]->kept);
    return bytes_of(steps_[k]->steps);
  }
  batches_.resize(rounds.rounds.size());
  if (!batches_[k]) batches_[k] = batches_of(round, memory, [](int) { return true; });
  site_.copies->start(*batches_[k]);
  return bytes_of(*batches_[k]);
}

std::int64_t PeerReads::start(const ReshardRound& round, const RoundMemory& memory,
                              const std::function<bool(int)>& wanted) {
  const std::vector<CopyBatch> batches = batches_of(round, memory, wanted);
  site_.copies->start(batches);
  return bytes_of(batches);
}

}  // namespace tessera
