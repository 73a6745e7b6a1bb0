#include "executor/transfers/round_sums.h"

#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/arena/byte_address.h"

namespace tessera {

RoundSums::RoundSums(const ReshardRound& round, int rank)
    : round_(round), rank_(rank), out_(end_of(round.outgoing)), in_(end_of(round.landing)) {
  const std::vector<Transfer>& transfers = round.plan.transfers;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (transfers[i].source == transfers[i].destination) continue;
    if (transfers[i].source == rank) to_[transfers[i].destination].push_back(static_cast<int>(i));
    if (transfers[i].destination == rank) from_[transfers[i].source].push_back(static_cast<int>(i));
  }
}

RoundSums::End RoundSums::end_of(const std::vector<std::vector<ByteRange>>& lists) {
  End end;
  std::map<std::pair<std::int64_t, std::int64_t>, int> places;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].empty()) continue;
    end.transfers.push_back(static_cast<int>(i));
    std::vector<int>& mine = end.of.emplace_back();
    for (const ByteRange& range : lists[i]) {
      const auto [place, added] =
          places.try_emplace({range.offset, range.bytes}, static_cast<int>(end.ranges.size()));
      if (added) end.ranges.push_back(range);
      mine.push_back(place->second);
    }
  }
  return end;
}

void RoundSums::sum(const End& end, const void* memory, MemoryOps& ops, TransferSums& sums) {
  std::vector<MemoryRange> ranges;
  ranges.reserve(end.ranges.size());
  for (const ByteRange& range : end.ranges) {
    ranges.push_back({at(memory, range.offset), static_cast<std::size_t>(range.bytes)});
  }
  const std::vector<std::uint64_t> parts = ops.checksums(ranges);
  for (std::size_t i = 0; i < end.transfers.size(); ++i) {
    std::uint64_t all = 0;
    for (const int part : end.of[i]) {
      all = all * 0x9E3779B97F4A7C15u + parts[static_cast<std::size_t>(part)];
    }
    sums[static_cast<std::size_t>(end.transfers[i])] = all;
  }
}

TransferSums RoundSums::share(const void* source, MemoryOps& ops, Communicator& host) const {
  TransferSums sums(round_.plan.transfers.size(), 0);
  sum(out_, source, ops, sums);
  std::map<int, TransferSums> out, in;
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  for (const auto& [peer, list] : to_) {
    TransferSums& mine = out[peer];
    for (const int index : list) mine.push_back(sums[static_cast<std::size_t>(index)]);
    sends.push_back({peer, mine.data(), mine.size() * sizeof(std::uint64_t)});
  }
  for (const auto& [peer, list] : from_) {
    TransferSums& theirs = in[peer];
    theirs.resize(list.size());
    receives.push_back({peer, theirs.data(), theirs.size() * sizeof(std::uint64_t)});
  }
  host.exchange(sends, receives);
  for (const auto& [peer, list] : from_) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      sums[static_cast<std::size_t>(list[i])] = in[peer][i];
    }
  }
  return sums;
}

void RoundSums::check_landed(const TransferSums& sums, const void* landed, MemoryOps& ops,
                             std::span<const ShardedTensor> tensors) const {
  TransferSums found(round_.plan.transfers.size(), 0);
  sum(in_, landed, ops, found);
  for (const int index : in_.transfers) {
    const auto i = static_cast<std::size_t>(index);
    if (found[i] == sums[i]) continue;
    const Transfer& transfer = round_.plan.transfers[i];
    throw Error(ExitCode::internal,
                "reshard: " + tensors[static_cast<std::size_t>(transfer.tensor)].name +
                    " from rank " + std::to_string(transfer.source) +
                    " has another checksum on rank " + std::to_string(rank_));
  }
}

}  // namespace tessera
