#include "executor/reshard/gather_path.h"

#include "executor/reshard/message_path.h"

namespace tessera {
namespace {

/// NCCL runs many all-gathers as one by its kernels, and one after the other by copy engines.
MergeLimits gather_limits(const PathSetup& setup) {
  const bool window = setup.options.transport == ReshardTransport::window;
  return {setup.options.merge_below.value_or(window ? kMergeAll : 0), setup.stage_bytes()};
}

}  // namespace

GatherPath::GatherPath(const PathSetup& setup)
    : ReshardPath(setup),
      messages_(setup.plan, setup.site),
      gathers_(setup.plan, setup.site, gather_limits(setup)) {}

ReshardTransport GatherPath::transport() const {
  const bool window = setup_.options.transport == ReshardTransport::window;
  return window ? ReshardTransport::window : ReshardTransport::all_gather;
}

std::int64_t GatherPath::run() {
  if (!prepared_) rest_ = make_staged_exchange(setup_, gathers_.rest_of(setup_.plan));
  prepared_ = true;
  const std::int64_t gathered = gathers_.run();
  return gathered + (rest_ ? rest_->run() : 0);
}

std::int64_t GatherPath::begin(const ReshardRound& round, const RoundMemory& memory,
                               const WantedTransfers& wanted) {
  return messages_.send(round, memory.from, memory.to, wanted);
}

std::int64_t GatherPath::stage_bytes() const {
  return gathers_.stage_bytes() + (rest_ ? rest_->stage_bytes() : 0);
}

void GatherPath::rest() {
  rest_.reset();
  prepared_ = false;
}

}  // namespace tessera
