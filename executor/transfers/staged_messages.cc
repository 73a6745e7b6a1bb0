#include "executor/transfers/staged_messages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "executor/transfers/pull_traffic.h"
#include "executor/transfers/reshard_rounds.h"

namespace tessera {
namespace {

constexpr std::int64_t kAlignment = 256;

using Ranges = std::vector<ByteRange>;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Ranges in the order of the bytes; those that follow one another are one.
void append(Ranges& ranges, const Ranges& more) {
  for (const ByteRange& range : more) {
    if (range.bytes == 0) continue;
    if (!ranges.empty() && ranges.back().offset + ranges.back().bytes == range.offset) {
      ranges.back().bytes += range.bytes;
    } else {
      ranges.push_back(range);
    }
  }
}

std::int64_t bytes_of(const Ranges& ranges) {
  std::int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.bytes;
  return bytes;
}

/// By rank, the box that it holds of a tensor.
using Held = std::map<int, Box>;

Held held_by(const std::vector<Holding>& holdings) {
  Held held;
  for (const Holding& each : holdings) held.emplace(each.rank, each.box);
  return held;
}

/// True when `part` is whole rows of what the rank holds.
bool is_rows(const Box& part, const Held& held, int rank, int outer_dim) {
  const auto found = held.find(rank);
  if (found == held.end()) return false;
  for (int d = 0; d < part.rank; ++d) {
    const auto dim = static_cast<std::size_t>(d);
    if (d != outer_dim && part.dims[dim] != found->second.dims[dim]) return false;
  }
  return true;
}

/// Which transfers are merged, alike on every rank: by tensor, whose boxes differ only in size.
class Merging {
 public:
  Merging(const PlacedReshard& plan, std::int64_t below) : plan_(plan), below_(below) {
    for (const ShardedTensor& tensor : plan.tensors) {
      source_.push_back(held_by(tensor.source));
      destination_.push_back(held_by(tensor.destination));
    }
  }

  std::int64_t bytes_of(const Transfer& transfer) const {
    return bytes_moved(transfer, plan_.tensors);
  }
  bool operator()(const Transfer& transfer) const {
    if (bytes_of(transfer) < below_) return true;
    const auto tensor = static_cast<std::size_t>(transfer.tensor);
    const int dim = plan_.tensors[tensor].outer_dim;
    return !is_rows(transfer.box, source_[tensor], transfer.source, dim) ||
           !is_rows(transfer.box, destination_[tensor], transfer.destination, dim);
  }

 private:
  const PlacedReshard& plan_;
  std::int64_t below_;
  std::vector<Held> source_, destination_;  // by tensor
};

/// The most that the stages of one rank would hold were everything one round: what it receives, and
/// each part that it sends once, however many ranks want it.
std::int64_t staged_at_once(const PlacedReshard& plan, const Merging& merged, int ranks) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  std::set<std::tuple<int, int, std::vector<std::int64_t>>> sent;
  for (const Transfer& transfer : plan.plan.transfers) {
    if (transfer.source == transfer.destination || !merged(transfer)) continue;
    const std::int64_t size = merged.bytes_of(transfer);
    bytes[static_cast<std::size_t>(transfer.destination)] += size;
    std::vector<std::int64_t> box;
    for (const Interval& dim : transfer.box.dims) box.insert(box.end(), {dim.lo, dim.hi});
    if (sent.emplace(transfer.source, transfer.tensor, std::move(box)).second) {
      bytes[static_cast<std::size_t>(transfer.source)] += size;
    }
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

/// A peer, and the transfer that is a message of its own; -1 = all that are merged.
using MessageKey = std::pair<int, int>;

/// Lays the messages of one direction out; `fill` are the copies between memory and stage. Parts
/// that several peers want are packed once. Returns the bytes of the stage.
std::int64_t lay_out(const std::map<MessageKey, Ranges>& by_message, bool sending,
                     std::vector<MessageRound::Message>& messages,
                     std::vector<MessageRound::Copy>& fill) {
  std::map<std::vector<std::int64_t>, std::int64_t> places;
  std::int64_t end = 0;
  for (const auto& [message, ranges] : by_message) {
    const int peer = message.first;
    if (ranges.size() == 1) messages.push_back({peer, false, ranges.front()});
    if (ranges.size() < 2) continue;
    std::vector<std::int64_t> key{sending ? -1 : peer};
    for (const ByteRange& range : ranges) key.insert(key.end(), {range.offset, range.bytes});
    const auto [place, added] = places.try_emplace(std::move(key), end);
    std::int64_t at = place->second;
    messages.push_back({peer, true, {at, bytes_of(ranges)}});
    if (!added) continue;
    end += aligned(bytes_of(ranges));
    for (const ByteRange& range : ranges) {
      fill.push_back(sending ? MessageRound::Copy{range.offset, at, range.bytes}
                             : MessageRound::Copy{at, range.offset, range.bytes});
      at += range.bytes;
    }
  }
  return end;
}

void use_second_half(MessageRound& round, std::int64_t out, std::int64_t in) {
  for (auto& message : round.sends) message.range.offset += message.staged ? out : 0;
  for (auto& message : round.receives) message.range.offset += message.staged ? in : 0;
  for (auto& copy : round.pack) copy.to += out;
  for (auto& copy : round.unpack) copy.from += in;
}

/// The plan with those of its transfers that are merged, or that are not.
PlacedReshard part_of(const PlacedReshard& plan, const Merging& merged, bool wanted) {
  PlacedReshard part = plan;
  std::erase_if(part.plan.transfers,
                [&](const Transfer& transfer) { return merged(transfer) != wanted; });
  return part;
}

/// A round's messages, in which each of its transfers is one (`alone`) or part of one.
class RoundMessages {
 public:
  explicit RoundMessages(int rank) : rank_(rank) {}

  void add(const ReshardRound& bucket, bool alone) {
    for (std::size_t i = 0; i < bucket.plan.transfers.size(); ++i) {
      const Transfer& transfer = bucket.plan.transfers[i];
      if (transfer.source == transfer.destination) continue;
      const int which = alone ? static_cast<int>(i) : -1;
      if (transfer.source == rank_) {
        append(sends_[{transfer.destination, which}], bucket.outgoing[i]);
      }
      if (transfer.destination == rank_) {
        append(receives_[{transfer.source, which}], bucket.landing[i]);
      }
    }
    for (const Pull& pull : bucket.pulls) {
      if (pull.peer == rank_) kept_.push_back({pull.from, pull.to, pull.bytes});
    }
  }

  MessageRound made(std::int64_t& out, std::int64_t& in) && {
    MessageRound round{.kept = std::move(kept_)};
    out = std::max(out, lay_out(sends_, true, round.sends, round.pack));
    in = std::max(in, lay_out(receives_, false, round.receives, round.unpack));
    return round;
  }

 private:
  int rank_;
  std::map<MessageKey, Ranges> sends_, receives_;
  std::vector<MessageRound::Copy> kept_;
};

}  // namespace

MessageRounds staged_messages(const PlacedReshard& plan, int rank, int ranks,
                              const MergeLimits& limits) {
  const Merging merged(plan, limits.merge_below);
  const auto all = static_cast<double>(2 * staged_at_once(plan, merged, ranks));
  const double count = std::max(1.0, std::ceil(all / static_cast<double>(limits.stage_bytes)));
  std::vector<double> ends;
  for (double k = 1; k < count; ++k) ends.push_back(k / count);
  ends.push_back(1);
  const ReshardRounds small = proportional_rounds(part_of(plan, merged, true), rank, ranks, ends);
  const ReshardRounds large = proportional_rounds(part_of(plan, merged, false), rank, ranks, ends);
  MessageRounds made;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    RoundMessages messages(rank);
    messages.add(small.rounds[k], /*alone=*/false);
    messages.add(large.rounds[k], /*alone=*/true);
    made.rounds.push_back(std::move(messages).made(made.out_bytes, made.in_bytes));
  }
  if (made.rounds.size() == 1) return made;
  for (std::size_t k = 1; k < made.rounds.size(); k += 2) {
    use_second_half(made.rounds[k], made.out_bytes, made.in_bytes);
  }
  made.out_bytes *= 2;
  made.in_bytes *= 2;
  return made;
}

}  // namespace tessera
