#include "executor/transfers/reshard_rounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "executor/transfers/pull_traffic.h"

namespace tessera {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Round, side and part of a tensor that one rank packs.
struct PackedKey {
  std::size_t round = 0;
  int rank = 0, tensor = 0;
  std::array<std::int64_t, std::size_t{2} * kMaxTensorRank> bounds{};
  auto operator<=>(const PackedKey&) const = default;
};

PackedKey key_of(std::size_t round, int rank, int tensor, const Box& box) {
  PackedKey key{.round = round, .rank = rank, .tensor = tensor};
  for (std::size_t d = 0; d < kMaxTensorRank; ++d) {
    key.bounds[2 * d] = box.dims[d].lo;
    key.bounds[2 * d + 1] = box.dims[d].hi;
  }
  return key;
}

/// Where parts lie in buffers; each part once, however many ranks read it.
struct Packing {
  std::map<PackedKey, std::int64_t> offset;
  std::int64_t half = 0;  // bytes of the fullest rank and round
};

enum class Side { source, destination };

Packing pack(const std::vector<ReshardPlan>& buckets, Side side, std::int64_t element_bytes) {
  Packing packing;
  for (std::size_t round = 0; round < buckets.size(); ++round) {
    std::map<int, std::int64_t> used;
    for (const Transfer& transfer : buckets[round].transfers) {
      const int rank = side == Side::source ? transfer.source : transfer.destination;
      std::int64_t& end = used[rank];
      const auto [entry, added] =
          packing.offset.try_emplace(key_of(round, rank, transfer.tensor, transfer.box), end);
      if (!added) continue;
      end += aligned(volume(transfer.box) * element_bytes);
      packing.half = std::max(packing.half, end);
    }
  }
  for (auto& [key, offset] : packing.offset) {
    offset += static_cast<std::int64_t>(key.round % 2) * packing.half;
  }
  return packing;
}

void note_ends(ReshardRound& round, int rank, const LocateOnRank& source,
               const LocateBox& destination) {
  round.outgoing.resize(round.plan.transfers.size());
  round.landing.resize(round.plan.transfers.size());
  for (std::size_t i = 0; i < round.plan.transfers.size(); ++i) {
    const Transfer& transfer = round.plan.transfers[i];
    if (transfer.source == rank) {
      round.outgoing[i] = source(rank, transfer.tensor, transfer.box);
    }
    if (transfer.destination == rank) {
      round.landing[i] = destination(transfer.tensor, transfer.box);
    }
  }
}

/// Casts between the ranges of a part in memory and its one range in a buffer.
void add_casts(std::vector<BufferCast>& casts, const std::vector<ByteRange>& memory,
               std::int64_t memory_element, std::int64_t buffer, std::int64_t buffer_element,
               bool into_buffer) {
  for (const ByteRange& range : memory) {
    const std::int64_t elements = range.bytes / memory_element;
    casts.push_back(into_buffer ? BufferCast{range.offset, buffer, elements}
                                : BufferCast{buffer, range.offset, elements});
    buffer += elements * buffer_element;
  }
}

ReshardRounds rounds_of(std::vector<ReshardPlan> buckets, const PlacedReshard& plan, int rank,
                        int ranks) {
  ReshardRounds made;
  for (ReshardPlan& bucket : buckets) {
    ReshardRound& round = made.rounds.emplace_back();
    round.plan = std::move(bucket);
    round.pulls = compile_pulls(round.plan, rank, ranks, plan.source, plan.destination);
    note_ends(round, rank, plan.source, plan.destination);
  }
  return made;
}

/// Where rounds end: 1/32 at both ends, longer towards the middle.
std::vector<double> tapered_ends(double longest) {
  std::vector<double> ends;
  double last = 0;
  for (const double thirty_seconds : {1, 2, 4, 8, 12, 16, 20, 24, 28, 30, 31, 32}) {
    const double end = thirty_seconds / 32, begin = last;
    const double parts = std::max(1.0, std::ceil((end - begin) / longest));
    for (double part = 1; part < parts; ++part) {
      ends.push_back(begin + (end - begin) * part / parts);
    }
    ends.push_back(last = end);
  }
  return ends;
}

}  // namespace

ReshardRounds direct_rounds(const PlacedReshard& plan, int rank, int ranks,
                            std::int64_t bucket_bytes) {
  return rounds_of(cut_into_buckets(plan.plan, plan.tensors, bucket_bytes), plan, rank, ranks);
}

ReshardRounds proportional_rounds(const PlacedReshard& plan, int rank, int ranks,
                                  std::span<const double> ends, std::span<const int> order) {
  return rounds_of(cut_in_proportion(plan.plan, plan.tensors, ends, order), plan, rank, ranks);
}

ReshardRounds overlapped_rounds(const PlacedReshard& plan, int rank, int ranks,
                                std::int64_t bucket_bytes, std::span<const int> order) {
  const std::int64_t busiest = busiest_end(traffic_of(plan.plan, plan.tensors, ranks));
  const double longest = bucket_bytes > 0 && busiest > 0
                             ? static_cast<double>(bucket_bytes) / static_cast<double>(busiest)
                             : 1.0;
  return proportional_rounds(plan, rank, ranks, tapered_ends(longest), order);
}

ByteSchedule messages_of(const ReshardRound& round, int rank,
                         const std::function<bool(int transfer)>& wanted) {
  ByteSchedule schedule;
  for (std::size_t i = 0; i < round.plan.transfers.size(); ++i) {
    const Transfer& transfer = round.plan.transfers[i];
    if (transfer.source == transfer.destination || !wanted(static_cast<int>(i))) continue;
    for (const ByteRange& range : round.outgoing[i]) {
      schedule.sends.push_back({transfer.destination, range});
      schedule.sent += range.bytes;
    }
    for (const ByteRange& range : round.landing[i]) {
      schedule.receives.push_back({transfer.source, range});
      schedule.received += range.bytes;
    }
  }
  for (const Pull& pull : round.pulls) {
    if (pull.peer != rank || !wanted(pull.transfer)) continue;
    schedule.copies.push_back({pull.from, pull.to, pull.bytes});
    schedule.kept += pull.bytes;
  }
  return schedule;
}

ReshardRounds buffered_rounds(const PlacedReshard& plan, int rank, int ranks, DType wire,
                              std::int64_t bucket_bytes) {
  const std::int64_t wire_bytes = size_of(wire);
  std::vector<ShardedTensor> tensors = plan.tensors;
  for (ShardedTensor& tensor : tensors) tensor.element_bytes = Bytes{wire_bytes};
  std::vector<ReshardPlan> buckets = cut_into_buckets(plan.plan, tensors, bucket_bytes, true);
  const auto out = std::make_shared<Packing>(pack(buckets, Side::source, wire_bytes));
  const auto in = std::make_shared<Packing>(pack(buckets, Side::destination, wire_bytes));
  ReshardRounds made{
      .buffered = true, .unpacks = wire != plan.destination_type, .out_bytes = out->half};
  made.in_bytes = made.unpacks ? in->half : 0;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    const LocateOnRank packed = [=](int owner, int tensor, const Box& box) {
      return std::vector<ByteRange>{
          {out->offset.at(key_of(k, owner, tensor, box)), volume(box) * wire_bytes}};
    };
    const LocateBox landed = [=](int tensor, const Box& box) {
      return std::vector<ByteRange>{
          {in->offset.at(key_of(k, rank, tensor, box)), volume(box) * wire_bytes}};
    };
    ReshardRound& round = made.rounds.emplace_back();
    round.plan = std::move(buckets[k]);
    const LocateBox& place = made.unpacks ? landed : plan.destination;
    round.pulls = compile_pulls(round.plan, rank, ranks, packed, place);
    note_ends(round, rank, packed, place);
    std::map<std::int64_t, bool> packs;  // by offset: packed already
    for (const Transfer& transfer : round.plan.transfers) {
      if (transfer.source == rank) {
        const std::int64_t to = packed(rank, transfer.tensor, transfer.box)[0].offset;
        if (!std::exchange(packs[to], true)) {
          add_casts(round.pack, plan.source(rank, transfer.tensor, transfer.box),
                    size_of(plan.source_type), to, wire_bytes, true);
        }
      }
      if (transfer.destination == rank && made.unpacks) {
        add_casts(round.unpack, plan.destination(transfer.tensor, transfer.box),
                  size_of(plan.destination_type), landed(transfer.tensor, transfer.box)[0].offset,
                  wire_bytes, false);
      }
    }
  }
  return made;
}

}  // namespace tessera
