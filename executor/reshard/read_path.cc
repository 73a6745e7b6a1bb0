#include "executor/reshard/read_path.h"

namespace tessera {

ReadPath::ReadPath(const PathSetup& setup)
    : ReshardPath(setup),
      reads_(setup.plan, setup.site, setup.signals, setup.options),
      messages_(setup.plan, setup.site) {}

ReshardTransport ReadPath::transport() const {
  return setup_.site.make_block ? ReshardTransport::copy_engine : ReshardTransport::host;
}

std::int64_t ReadPath::begin(std::size_t k) {
  const std::int64_t read = reads_.start(setup_.rounds, k, setup_.memory);
  return read +
         send_to_other_hosts(setup_.rounds.rounds[k], setup_.memory, [](int) { return true; });
}

std::int64_t ReadPath::begin(const ReshardRound& round, const RoundMemory& memory,
                             const WantedTransfers& wanted) {
  const std::int64_t read = reads_.start(round, memory, wanted);
  return read + send_to_other_hosts(round, memory, wanted);
}

/// Both ends of an edge decide alike: only ranks of one host read one another's memory.
std::int64_t ReadPath::send_to_other_hosts(const ReshardRound& round, const RoundMemory& memory,
                                           const WantedTransfers& wanted) {
  if (setup_.signals.usable()) return 0;  // there are none
  const int rank = setup_.site.host->rank();
  return messages_.send(round, memory.from, memory.to, [&](int index) {
    const Transfer& transfer = round.plan.transfers[static_cast<std::size_t>(index)];
    const int other = transfer.source == rank ? transfer.destination : transfer.source;
    return !reads_.reads(other) && wanted(index);
  });
}

void ReadPath::end() {
  setup_.site.copies->wait();
  if (!setup_.signals.usable()) messages_.settle();
}

}  // namespace tessera
