#include "executor/reshard/round_transfers.h"

#include <algorithm>
#include <limits>

namespace tessera {

std::int64_t RoundTransfers::start(const SwitchRounds& rounds, std::size_t k,
                                   const RoundMemory& memory) {
  std::int64_t received = use_reads_ ? reads_.start(rounds, k, memory) : 0;
  if (sends_messages()) received += send(rounds.rounds[k], memory, [](int) { return true; });
  return received;
}

std::int64_t RoundTransfers::start(const SwitchRound& round, const RoundMemory& memory,
                                   const std::function<bool(int)>& wanted) {
  std::int64_t received = use_reads_ ? reads_.start(round, memory, wanted) : 0;
  if (sends_messages()) received += send(round, memory, wanted);
  return received;
}

/// Both ends of an edge decide alike: only ranks of one host read one another's memory.
std::int64_t RoundTransfers::send(const SwitchRound& round, const RoundMemory& memory,
                                  const std::function<bool(int)>& wanted) {
  const int rank = site_.host->rank();
  const auto by_message = [&](int index) {
    const Transfer& transfer = round.plan.transfers[static_cast<std::size_t>(index)];
    const int other = transfer.source == rank ? transfer.destination : transfer.source;
    return !(use_reads_ && reads_.reads(other)) && wanted(index);
  };
  const ByteSchedule schedule = messages_of(round, rank, by_message);
  execute(schedule, memory.from, memory.to, *site_.world, uneven());
  return schedule.received;
}

/// Some rank sends much more than another: all at once would meet at its links.
bool RoundTransfers::uneven() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const RankTraffic& traffic : plan_.plan.traffic) {
    least = std::min(least, traffic.sent);
    most = std::max(most, traffic.sent);
  }
  return most - least > most / 8;
}

void RoundTransfers::settle() {
  if (use_reads_) site_.copies->wait();
  if (sends_messages()) site_.world->barrier();
}

}  // namespace tessera
