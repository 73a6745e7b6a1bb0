#include "executor/transfers/round_messages.h"

#include <algorithm>
#include <limits>

namespace tessera {

std::int64_t RoundMessages::send(const ReshardRound& round, const void* from, void* to,
                                 const WantedTransfers& wanted) {
  const ByteSchedule schedule = messages_of(round, site_.host->rank(), wanted);
  execute(schedule, from, to, *site_.world, uneven());
  return schedule.received;
}

/// Some rank sends much more than another: all at once would meet at its links.
bool RoundMessages::uneven() const {
  Bytes least{std::numeric_limits<std::int64_t>::max()}, most;
  for (const RankTraffic& traffic : plan_.plan.traffic) {
    least = std::min(least, traffic.sent);
    most = std::max(most, traffic.sent);
  }
  return most - least > most / 8;
}

}  // namespace tessera
