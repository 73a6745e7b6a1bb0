// A reshard with casts: weights are packed into buffers in the wire's type, bucket by bucket,
// travel from there, and are cast again where they land.
//
// Used by WeightReshard. While one bucket travels the next is cast into the other half of the
// buffers. Collective; keeps references; bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executor/reshard/reshard_path.h"
#include "executor/reshard/reshard_report.h"
#include "executor/transfers/round_sums.h"

namespace tessera {

class BufferedReshard {
 public:
  /// Collective. Buffers are for this `wire` type; `by_reads`: peers map them.
  BufferedReshard(const PlacedReshard& plan, const ReshardSite& site,
                  const WeightReshardOptions& options, MemoryOps& ops, DType wire, bool by_reads);

  /// Moves everything; fills received, verified and cast_error. `barrier` is the ranks'.
  void run(ReshardPath& path, const std::function<void()>& barrier, ReshardReport& report);
  std::int64_t bytes() const { return out_->bytes() + (in_ ? in_->bytes() : 0); }
  DType wire() const { return wire_; }

 private:
  const RoundSums& sums_of(std::size_t k);
  void pack(const ReshardRound& round);
  void unpack(const ReshardRound& round);
  /// |cast(w) - w| / |w| of what all ranks have packed. Collective.
  double cast_error();
  bool loses() const { return wire_ != DType::fp32 && plan_.source_type == DType::fp32; }

  const PlacedReshard& plan_;
  const ReshardSite& site_;
  const WeightReshardOptions& options_;
  MemoryOps& ops_;
  DType wire_;
  ReshardRounds rounds_;
  std::unique_ptr<SharedBlock> out_, in_;  // in_: nullptr where what lands needs no cast
  std::unique_ptr<PeerBlocks> peers_;
  std::vector<std::optional<RoundSums>> sums_;
};

}  // namespace tessera
