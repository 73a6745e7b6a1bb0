// The certificate of a run's servers: VllmRollout::certify.
#include <algorithm>

#include "cost_models/documents/check.h"
#include "executor/comm/stopwatch.h"
#include "executor/vllm/vllm_rollout.h"

namespace tessera {
namespace {

/// Elements of a block at most: workers take few kernels a block, however large.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 22;

/// The same on all ranks as on one of them. Collective.
std::vector<std::uint64_t> shared(std::vector<std::uint64_t> digests, std::size_t count, int root,
                                  Communicator& host) {
  digests.resize(count);
  host.broadcast(digests.data(), digests.size(), DType::int64, root);
  return digests;
}

}  // namespace

void VllmRollout::make_certificates() {
  const int tp = setting_.rollout.layout.tp;
  std::vector<std::vector<int>> ranks(static_cast<std::size_t>(replicas()));
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    ranks[i / static_cast<std::size_t>(tp)].push_back(workers_[i].rank);
  }
  const auto tensors = served_tensors(*setting_.table, &setting_.training, setting_.dtype, ranks);
  certificate_ = make_certificate(tensors, host_.rank(), kBlockElements);
  if (!speaks()) return;
  std::vector<WeightCertificate> mine;
  for (const VllmWorkerSlices& worker : own_workers()) {
    mine.push_back(make_certificate(tensors, worker.rank, kBlockElements));
  }
  held_ = std::make_unique<ServerWeights>(*setting_.table, std::move(mine));
}

CertificateReport VllmRollout::certify(const HeldWeights& training, MemoryOps& ops) {
  const Stopwatch watch;
  if (!certificate_) make_certificates();
  std::vector<CertificateBlock> trained;
  for (const int block : certificate_->trained) {
    trained.push_back(certificate_->blocks[static_cast<std::size_t>(block)]);
  }
  const std::vector<std::uint64_t> expected = digests_of_owners(
      *certificate_, block_digests(*certificate_, training, trained, std::nullopt, ops), host_);
  CertificateReport report;
  // Pairs of a worker, counted through all servers, and a block.
  std::vector<std::int64_t> found;
  on_speaker("reshard", [&] {
    found.clear();
    report.compared = 0;
    const auto digests = held_->digests(server_->now(), options_.request_timeout_s);
    const int first = replica_ * setting_.rollout.layout.tp;
    for (int tp_rank = 0; tp_rank < setting_.rollout.layout.tp; ++tp_rank) {
      const std::span<const int> needed = held_->needed(tp_rank);
      for (std::size_t i = 0; i < needed.size(); ++i) {
        const auto block = static_cast<std::size_t>(needed[i]);
        report.compared += volume(certificate_->blocks[block].box) * size_of(setting_.dtype);
        if (digests[static_cast<std::size_t>(tp_rank)][i] == expected[block]) continue;
        found.insert(found.end(), {first + tp_rank, needed[i]});
      }
    }
  });
  settle();
  unproven_ = false;
  std::array<std::int64_t, 2> counts{report.compared, std::ssize(found) / 2};
  host_.all_reduce(counts.data(), counts.size(), DType::int64, ReduceOp::sum);
  report.compared = counts[0];
  report.differing = counts[1];
  if (report.differing > 0) {
    constexpr std::size_t kEach = std::size_t{2} * kMostDifferences;
    found.resize(kEach, -1);
    std::vector<std::int64_t> all(kEach * static_cast<std::size_t>(host_.size()));
    host_.all_gather(found.data(), all.data(), kEach, DType::int64);
    for (std::size_t i = 0; i < all.size(); i += 2) {
      if (all[i] < 0 || std::ssize(report.differences) == kMostDifferences) continue;
      report.differences.push_back(
          locate(static_cast<int>(all[i]), static_cast<int>(all[i + 1]), training, ops));
    }
  }
  report.seconds = watch.seconds();
  return report;
}

/// Alike on every rank. Collective.
WeightDifference VllmRollout::locate(int worker, int block, const HeldWeights& training,
                                     MemoryOps& ops) {
  const int tp = setting_.rollout.layout.tp, replica = worker / tp, tp_rank = worker % tp;
  const int speaker = setting_.rollout.rank_at(speaker_coord(replica));
  const CertificateBlock& whole = certificate_->blocks[static_cast<std::size_t>(block)];
  const auto expected = [&](std::span<const CertificateBlock> parts) {
    std::vector<std::uint64_t> mine;
    if (host_.rank() == whole.owner) {
      mine = block_digests(*certificate_, training, parts, std::nullopt, ops);
    }
    return shared(std::move(mine), parts.size(), whole.owner, host_);
  };
  const auto found = [&](std::span<const CertificateBlock> parts) {
    std::vector<std::uint64_t> theirs;
    if (host_.rank() == speaker) {
      theirs = held_->digests_of(server_->now(), tp_rank, parts, options_.request_timeout_s);
    }
    return shared(std::move(theirs), parts.size(), speaker, host_);
  };
  const DifferingEnds ends = differing_ends(whole, expected, found);
  const VllmPart part =
      vllm_parts(*setting_.table, tp, tp_rank).at(static_cast<std::size_t>(whole.tensor));
  const std::int64_t element = size_of(setting_.dtype);
  return {.rank = workers_[static_cast<std::size_t>(worker)].rank,
          .owner = whole.owner,
          .tensor = whole.tensor,
          .trained = false,
          .bytes = bytes_between(part, ends.first, ends.last, element),
          .part_bytes = volume(part.box) * element};
}

}  // namespace tessera
