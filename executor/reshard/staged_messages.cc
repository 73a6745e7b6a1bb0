#include "executor/reshard/staged_messages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "executor/reshard/pull_steps.h"
#include "executor/reshard/switch_rounds.h"

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

/// The most that the stages of one rank would hold were everything one round: what it receives, and
/// each part that it sends once, however many ranks want it.
std::int64_t staged_at_once(const SwitchPlan& plan, int ranks) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  std::set<std::tuple<int, int, std::vector<std::int64_t>>> sent;
  for (const Transfer& transfer : plan.plan.transfers) {
    if (transfer.source == transfer.destination) continue;
    const std::int64_t size = volume(transfer.box) *
                              plan.tensors[static_cast<std::size_t>(transfer.tensor)].element_bytes;
    bytes[static_cast<std::size_t>(transfer.destination)] += size;
    std::vector<std::int64_t> box;
    for (const Interval& dim : transfer.box.dims) box.insert(box.end(), {dim.lo, dim.hi});
    if (sent.emplace(transfer.source, transfer.tensor, std::move(box)).second) {
      bytes[static_cast<std::size_t>(transfer.source)] += size;
    }
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

/// Lays the messages of one direction out; `fill` are the copies between memory and stage. Parts
/// that several peers want are packed once. Returns the bytes of the stage.
std::int64_t lay_out(const std::map<int, Ranges>& by_peer, bool sending,
                     std::vector<MessageRound::Message>& messages,
                     std::vector<MessageRound::Copy>& fill) {
  std::map<std::vector<std::int64_t>, std::int64_t> places;
  std::int64_t end = 0;
  for (const auto& [peer, ranges] : by_peer) {
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

MessageRound message_round(const SwitchRound& bucket, int rank, std::int64_t& out,
                           std::int64_t& in) {
  std::map<int, Ranges> sends, receives;
  for (std::size_t i = 0; i < bucket.plan.transfers.size(); ++i) {
    const Transfer& transfer = bucket.plan.transfers[i];
    if (transfer.source == transfer.destination) continue;
    if (transfer.source == rank) append(sends[transfer.destination], bucket.outgoing[i]);
    if (transfer.destination == rank) append(receives[transfer.source], bucket.landing[i]);
  }
  MessageRound round;
  out = std::max(out, lay_out(sends, true, round.sends, round.pack));
  in = std::max(in, lay_out(receives, false, round.receives, round.unpack));
  for (const Pull& pull : bucket.pulls) {
    if (pull.peer == rank) round.kept.push_back({pull.from, pull.to, pull.bytes});
  }
  return round;
}

}  // namespace

MessageRounds staged_messages(const SwitchPlan& plan, int rank, int ranks,
                              std::int64_t stage_bytes) {
  const auto all = static_cast<double>(2 * staged_at_once(plan, ranks));
  const double count = std::max(1.0, std::ceil(all / static_cast<double>(stage_bytes)));
  std::vector<double> ends;
  for (double k = 1; k < count; ++k) ends.push_back(k / count);
  ends.push_back(1);
  const SwitchRounds buckets = proportional_rounds(plan, rank, ranks, ends);
  MessageRounds made;
  for (const SwitchRound& bucket : buckets.rounds) {
    made.rounds.push_back(message_round(bucket, rank, made.out_bytes, made.in_bytes));
  }
  for (std::size_t k = 1; k < made.rounds.size(); k += 2) {
    use_second_half(made.rounds[k], made.out_bytes, made.in_bytes);
  }
  made.out_bytes *= 2;
  made.in_bytes *= 2;
  return made;
}

}  // namespace tessera
