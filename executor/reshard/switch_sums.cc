#include "executor/reshard/switch_sums.h"

#include <map>
#include <string>
#include <utility>

#include "cost_models/spec/problem.h"

namespace tessera {
namespace {

using Lists = std::vector<std::vector<ByteRange>>;

/// One sum per transfer with ranges; equal ranges are read once.
TransferSums sums_of(const Lists& lists, const void* memory, MemoryOps& ops) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> places;
  std::vector<MemoryRange> ranges;
  for (const std::vector<ByteRange>& list : lists) {
    for (const ByteRange& range : list) {
      if (!places.try_emplace({range.offset, range.bytes}, ranges.size()).second) continue;
      ranges.push_back({static_cast<const std::byte*>(memory) + range.offset,
                        static_cast<std::size_t>(range.bytes)});
    }
  }
  const std::vector<std::uint64_t> sums = ops.checksums(ranges);
  TransferSums made(lists.size(), 0);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (const ByteRange& range : lists[i]) {
      made[i] = made[i] * 0x9E3779B97F4A7C15u + sums[places.at({range.offset, range.bytes})];
    }
  }
  return made;
}

}  // namespace

TransferSums share_sums(const SwitchRound& round, const void* source, int rank, MemoryOps& ops,
                        Communicator& host) {
  TransferSums sums = sums_of(round.outgoing, source, ops);
  std::map<int, TransferSums> out, in;
  const std::vector<Transfer>& transfers = round.plan.transfers;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (transfers[i].source == transfers[i].destination) continue;
    if (transfers[i].source == rank) out[transfers[i].destination].push_back(sums[i]);
    if (transfers[i].destination == rank) in[transfers[i].source].push_back(0);
  }
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  for (auto& [peer, list] : out) {
    sends.push_back({peer, list.data(), list.size() * sizeof(std::uint64_t)});
  }
  for (auto& [peer, list] : in) {
    receives.push_back({peer, list.data(), list.size() * sizeof(std::uint64_t)});
  }
  host.exchange(sends, receives);
  std::map<int, std::size_t> next;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (transfers[i].destination == rank && transfers[i].source != rank) {
      sums[i] = in[transfers[i].source][next[transfers[i].source]++];
    }
  }
  return sums;
}

void check_landed(const SwitchRound& round, const TransferSums& sums, const void* landed, int rank,
                  MemoryOps& ops, std::span<const ShardedTensor> tensors) {
  const TransferSums found = sums_of(round.landing, landed, ops);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Transfer& transfer = round.plan.transfers[i];
    if (transfer.destination != rank || found[i] == sums[i]) continue;
    throw Error(ExitCode::internal,
                "reshard: " + tensors[static_cast<std::size_t>(transfer.tensor)].name +
                    " from rank " + std::to_string(transfer.source) +
                    " has another checksum on rank " + std::to_string(rank));
  }
}

}  // namespace tessera
