#include "executor/arena/byte_schedule.h"

#include <string>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::int64_t total(std::span<const ByteRange> ranges) {
  std::int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.bytes;
  return bytes;
}

void append(std::vector<ByteMove>& moves, int peer, std::span<const ByteRange> ranges) {
  for (const ByteRange& range : ranges) {
    if (range.bytes > 0) moves.push_back({peer, range});
  }
}

/// Pairs two lists of ranges with equal totals into copies.
void append_copies(std::vector<ByteSchedule::Copy>& copies, std::vector<ByteRange> from,
                   std::vector<ByteRange> to) {
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    const std::int64_t bytes = std::min(from[i].bytes, to[j].bytes);
    if (bytes > 0) {
      ByteSchedule::Copy* last = copies.empty() ? nullptr : &copies.back();
      if (last != nullptr && last->from + last->bytes == from[i].offset &&
          last->to + last->bytes == to[j].offset) {
        last->bytes += bytes;
      } else {
        copies.push_back({from[i].offset, to[j].offset, bytes});
      }
    }
    from[i] = {from[i].offset + bytes, from[i].bytes - bytes};
    to[j] = {to[j].offset + bytes, to[j].bytes - bytes};
    if (from[i].bytes == 0) ++i;
    if (to[j].bytes == 0) ++j;
  }
}

}  // namespace

LocateBox locate_in(const ArenaLayout& arena) {
  return [&arena](int tensor, const Box& box) {
    return std::vector<ByteRange>{range_of(arena, tensor, box)};
  };
}

ByteSchedule compile(const ReshardPlan& plan, int rank, const LocateBox& source,
                     const LocateBox& destination,
                     const std::function<bool(const Transfer&)>& wanted) {
  ByteSchedule schedule;
  for (const Transfer& transfer : plan.transfers) {
    const bool sends = transfer.source == rank, receives = transfer.destination == rank;
    if ((!sends && !receives) || (wanted && !wanted(transfer))) continue;
    std::vector<ByteRange> from, to;
    if (sends) from = source(transfer.tensor, transfer.box);
    if (receives) to = destination(transfer.tensor, transfer.box);
    if (sends && receives) {
      if (total(from) != total(to)) {
        throw Error(ExitCode::internal, "reshard: source and destination of tensor " +
                                            std::to_string(transfer.tensor) + " differ in size");
      }
      schedule.kept += total(to);
      append_copies(schedule.copies, std::move(from), std::move(to));
    } else if (sends) {
      schedule.sent += total(from);
      append(schedule.sends, transfer.destination, from);
    } else {
      schedule.received += total(to);
      append(schedule.receives, transfer.source, to);
    }
  }
  return schedule;
}

void execute(const ByteSchedule& schedule, const void* source, void* destination,
             Communicator& world, bool in_rounds) {
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(destination);
  const int rank = world.rank(), size = world.size();
  const int rounds = in_rounds ? size : 1;
  std::vector<std::vector<SendBlock>> sends(static_cast<std::size_t>(rounds));
  std::vector<std::vector<ReceiveBlock>> receives(sends.size());
  const auto sending = [&](int peer) -> std::vector<SendBlock>& {
    return sends[static_cast<std::size_t>((peer - rank + size) % rounds)];
  };
  const auto receiving = [&](int peer) -> std::vector<ReceiveBlock>& {
    return receives[static_cast<std::size_t>((rank - peer + size) % rounds)];
  };
  for (const ByteMove& move : schedule.sends) {
    sending(move.peer).push_back(
        {move.peer, from + move.range.offset, static_cast<std::size_t>(move.range.bytes)});
  }
  for (const ByteMove& move : schedule.receives) {
    receiving(move.peer).push_back(
        {move.peer, to + move.range.offset, static_cast<std::size_t>(move.range.bytes)});
  }
  for (const ByteSchedule::Copy& copy : schedule.copies) {
    if (from + copy.from == to + copy.to) continue;  // the layouts share this storage
    const auto bytes = static_cast<std::size_t>(copy.bytes);
    sending(rank).push_back({rank, from + copy.from, bytes});
    receiving(rank).push_back({rank, to + copy.to, bytes});
  }
  for (std::size_t round = 0; round < sends.size(); ++round) {
    world.exchange(sends[round], receives[round]);
  }
}

}  // namespace tessera
