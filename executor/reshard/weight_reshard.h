// WeightReshard: a reshard of layouts that is carried out again and again, by one ReshardPath.
//
// Made once from metadata, collectively: schedules are compiled, peers' memory is mapped. run()
// moves everything; begin(), ready() and finish() move it bucket by bucket while an optimizer still
// writes the rest. Works on any tensors (ShardedTensor), not only a model's. Torch-free; memory is
// the caller's, host or device. One thread, but for the one that it keeps itself while
// overlapping. Bytes and seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "executor/reshard/reshard_report.h"
#include "executor/transfers/reshard_site.h"
#include "executor/transfers/weight_reshard_options.h"

namespace tessera {

class WeightReshard {
 public:
  /// Collective over site.host. Keeps references to what `site` points to.
  WeightReshard(PlacedReshard plan, const ReshardSite& site, const WeightReshardOptions& options);
  ~WeightReshard();
  WeightReshard(const WeightReshard&) = delete;

  /// Moves the weights. Collective. What the producer's stream was given before the call arrives;
  /// when it returns the destination is complete and sources may be overwritten.
  ReshardReport run(const ReshardHooks& hooks = {});

  /// The overlapped reshard. Buckets follow the order of writing; ready(k) says that this rank's
  /// producer stream has been given the last writes to every tensor of bucket k, and is called for
  /// k = 0, 1, ... on every rank. finish() returns when everything has arrived; its report's
  /// exposed_s is what it waited. Needs a block, one host and one type.
  int buckets() const;
  /// The first bucket that holds a part of the tensor (row of PlacedReshard::tensors), before whose
  /// ready() the whole tensor must be written; -1 = none.
  int first_bucket_of(int tensor) const;
  void begin(const ReshardHooks& hooks = {});
  void ready(int bucket);
  /// Instead of ready(): the producer stream has been given the last writes to this rank's part of
  /// these tensors, in any order. Buckets that become complete by it are ready; finish() counts
  /// tensors that were never named as written.
  void written(std::span<const int> tensors);
  bool begun() const;
  ReshardReport finish();

  /// Memory that the reshard itself holds on this rank, beyond source and destination.
  std::int64_t buffer_bytes() const;
  ReshardTransport transport() const;  // as chosen; automatic before the first run

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
