#include "executor/reshard/message_path.h"

namespace tessera {

std::unique_ptr<StagedExchange> make_staged_exchange(const PathSetup& setup,
                                                     const PlacedReshard& plan) {
  if (plan.plan.transfers.empty()) return nullptr;
  return std::make_unique<StagedExchange>(plan, setup.site, setup.options.merge_below,
                                          setup.stage_bytes());
}

std::int64_t MessagePath::run() {
  if (!staged_ && setup_.can_stage()) staged_ = make_staged_exchange(setup_, setup_.plan);
  return staged_ ? staged_->run() : ReshardPath::run();
}

std::int64_t MessagePath::begin(const ReshardRound& round, const RoundMemory& memory,
                                const WantedTransfers& wanted) {
  return messages_.send(round, memory.from, memory.to, wanted);
}

}  // namespace tessera
