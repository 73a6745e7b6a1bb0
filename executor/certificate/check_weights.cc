#include <algorithm>
#include <array>
#include <limits>

#include "cost_models/documents/check.h"
#include "executor/arena/byte_address.h"
#include "executor/certificate/block_digests.h"
#include "executor/certificate/certificate.h"
#include "executor/certificate/slice_pieces.h"
#include "executor/comm/stopwatch.h"

namespace tessera {
namespace {

using kernels::DigestPiece;
using Digests = std::vector<std::uint64_t>;

constexpr std::int64_t kPartElements =
    1024;  // in which a block's differing elements are looked for

/// A block that is not what its owner trains, where a rank holds it.
struct Mismatch {
  int rank = 0, block = 0;
  bool trained = false;
};

/// One of the two parts that a rank plays, with what digests it.
class Side {
 public:
  Side(const WeightCertificate& certificate, const HeldWeights& held, std::optional<DType> through,
       MemoryOps& ops)
      : certificate_(certificate), held_(held), through_(through), ops_(ops) {}

  const CertificateBlock& block(int index) const {
    return certificate_.blocks[static_cast<std::size_t>(index)];
  }
  HeldPart part(int index) const { return held_part(held_, block(index).tensor); }
  std::int64_t part_bytes(int index) const {
    const HeldPart held = part(index);
    return volume(held.box) * held.element_bytes;
  }
  std::vector<DigestPiece> pieces(int index) const {
    return block_pieces(certificate_, held_, block(index));
  }

  /// By block of the list.
  Digests digests(std::span<const int> blocks) const {
    std::vector<std::vector<DigestPiece>> lists;
    lists.reserve(blocks.size());
    for (const int index : blocks) lists.push_back(pieces(index));
    return summed(lists);
  }

  /// Of the block's elements [range), cut into parts of `size`.
  Digests digests_in(int index, Interval range, std::int64_t size) const {
    const std::vector<DigestPiece> whole = pieces(index);
    std::vector<std::vector<DigestPiece>> lists;
    for (std::int64_t lo = range.lo; lo < range.hi; lo += size) {
      lists.push_back(
          cut_pieces(whole, {lo, std::min(lo + size, range.hi)}, held_.places->element_bytes));
    }
    return summed(lists);
  }

 private:
  Digests summed(std::span<const std::vector<DigestPiece>> lists) const {
    if (lists.empty()) return {};
    return summed_digests(lists, held_.places->element_bytes, through_, ops_);
  }

  const WeightCertificate& certificate_;
  const HeldWeights& held_;
  std::optional<DType> through_;
  MemoryOps& ops_;
};

/// Blocks that this rank's rollout must hold, but for those in whose memory the rank trains.
std::vector<int> compared_blocks(const WeightCertificate& certificate, const Side& training,
                                 const Side& rollout, CertificateReport& report) {
  std::vector<int> compared;
  for (const int block : certificate.needed) {
    const Box& box = certificate.blocks[static_cast<std::size_t>(block)].box;
    const HeldPart held = rollout.part(block);
    const auto place = [&](const HeldPart& part) {
      return at(part.data, place_in(part, box, 0) * part.element_bytes);
    };
    const bool one =
        std::binary_search(certificate.trained.begin(), certificate.trained.end(), block) &&
        place(training.part(block)) == place(held);
    (one ? report.shared : report.compared) += volume(box) * held.element_bytes;
    if (!one) compared.push_back(block);
  }
  return compared;
}

/// Adds up the ranks' counts. Returns the mismatches of all ranks, by rank: as many as are told.
std::vector<Mismatch> told_of(std::span<const Mismatch> mine, Communicator& host,
                              CertificateReport& report) {
  std::array<std::int64_t, 3> counts{report.compared, report.shared, std::ssize(mine)};
  host.all_reduce(counts.data(), counts.size(), DType::int64, ReduceOp::sum);
  report.compared = counts[0];
  report.shared = counts[1];
  report.differing = counts[2];
  if (report.differing == 0) return {};
  constexpr std::size_t kEach = kMostDifferences;
  std::vector<std::int64_t> own(kEach, -1), all(kEach * static_cast<std::size_t>(host.size()));
  for (std::size_t i = 0; i < std::min(mine.size(), kEach); ++i) {
    own[i] = std::int64_t{2} * mine[i].block + (mine[i].trained ? 1 : 0);
  }
  host.all_gather(own.data(), all.data(), kEach, DType::int64);
  std::vector<Mismatch> told;
  for (std::size_t i = 0; i < all.size() && told.size() < kEach; ++i) {
    if (all[i] < 0) continue;
    told.push_back({.rank = static_cast<int>(i / kEach),
                    .block = static_cast<int>(all[i] / 2),
                    .trained = all[i] % 2 == 1});
  }
  return told;
}

/// First and one past the last index at which the digests differ; all where none does.
Interval differing_range(const Digests& expected, const Digests& found) {
  Interval range{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (expected[i] == found[i]) continue;
    range = {std::min(range.lo, static_cast<std::int64_t>(i)), static_cast<std::int64_t>(i) + 1};
  }
  return range.empty() ? Interval{0, std::ssize(found)} : range;
}

/// Finds the elements of a mismatch. Its block's owner sends digests of parts of the block, the
/// rank that differs says in which parts it does.
class Search {
 public:
  Search(const Side& owner, const Side& holder, int rank, Communicator& host)
      : owner_(owner), holder_(holder), rank_(rank), host_(host) {}

  /// Elements of the block. Collective.
  Interval differing(const Mismatch& mismatch) {
    const std::int64_t count = volume(owner_.block(mismatch.block).box);
    const Interval parts = compared(mismatch, {0, count}, kPartElements);
    const auto part = [&](std::int64_t i) {
      return Interval{i * kPartElements, std::min((i + 1) * kPartElements, count)};
    };
    const Interval first = part(parts.lo), last = part(parts.hi - 1);
    return {first.lo + compared(mismatch, first, 1).lo, last.lo + compared(mismatch, last, 1).hi};
  }

 private:
  /// Which parts of `size` elements of the range differ.
  Interval compared(const Mismatch& mismatch, Interval range, std::int64_t size) {
    const int owner = owner_.block(mismatch.block).owner;
    Digests expected(static_cast<std::size_t>((range.size() + size - 1) / size));
    if (rank_ == owner) expected = owner_.digests_in(mismatch.block, range, size);
    host_.broadcast(expected.data(), expected.size(), DType::int64, owner);
    std::array<std::int64_t, 2> ends{};
    if (rank_ == mismatch.rank) {
      const Interval found =
          differing_range(expected, holder_.digests_in(mismatch.block, range, size));
      ends = {found.lo, found.hi};
    }
    host_.broadcast(ends.data(), ends.size(), DType::int64, mismatch.rank);
    return {ends[0], ends[1]};
  }

  const Side &owner_, &holder_;
  int rank_;
  Communicator& host_;
};

/// Alike on every rank: the rank that differs says where in its memory. Collective.
WeightDifference located(const Mismatch& mismatch, const Side& training, const Side& rollout,
                         int rank, Communicator& host) {
  const Side& holder = mismatch.trained ? training : rollout;
  const Interval elements = Search(training, holder, rank, host).differing(mismatch);
  const CertificateBlock& block = training.block(mismatch.block);
  std::array<std::int64_t, 3> place{};
  if (rank == mismatch.rank) {
    const HeldPart part = holder.part(mismatch.block);
    const std::int64_t first = place_in(part, block.box, elements.lo);
    const std::int64_t last = place_in(part, block.box, elements.hi - 1);
    place = {first * part.element_bytes, (last + 1 - first) * part.element_bytes,
             holder.part_bytes(mismatch.block)};
  }
  host.broadcast(place.data(), place.size(), DType::int64, mismatch.rank);
  return {.rank = mismatch.rank,
          .owner = block.owner,
          .tensor = block.tensor,
          .trained = mismatch.trained,
          .bytes = {place[0], place[1]},
          .part_bytes = place[2]};
}

}  // namespace

CertificateReport check_weights(const WeightCertificate& certificate, const HeldWeights& training,
                                const HeldWeights& rollout, std::optional<DType> wire,
                                MemoryOps& ops, Communicator& host) {
  const Stopwatch watch;
  const int rank = certificate.rank;
  CertificateReport report;
  const Side trains(certificate, training, wire, ops);
  const Side generates(certificate, rollout, std::nullopt, ops);
  const Digests trained = trains.digests(certificate.trained);
  const Digests expected = digests_of_owners(certificate, trained, host);
  std::vector<Mismatch> mine;
  const auto compare = [&](std::span<const int> blocks, const Digests& found, bool is_trained) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (found[i] == expected[static_cast<std::size_t>(blocks[i])]) continue;
      mine.push_back({.rank = rank, .block = blocks[i], .trained = is_trained});
    }
  };
  const std::vector<int> needed = compared_blocks(certificate, trains, generates, report);
  compare(needed, generates.digests(needed), false);
  compare(certificate.trained, trained, true);
  for (const Mismatch& each : told_of(mine, host, report)) {
    report.differences.push_back(located(each, trains, generates, rank, host));
  }
  report.seconds = watch.seconds();
  return report;
}

}  // namespace tessera
