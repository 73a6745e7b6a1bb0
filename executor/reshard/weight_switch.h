// A switch of layouts, carried out again and again: the transport, and the options of practice.
//
// Made once from metadata, collectively: schedules are compiled, peers' memory is mapped. run()
// moves everything; begin(), ready() and finish() move it bucket by bucket while an optimizer still
// writes the rest. Works on any tensors (ShardedTensor), not only a model's. Torch-free; memory is
// the caller's, host or device. One thread, but for the one that it keeps itself while
// overlapping. Bytes and seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/reshard/switch_plan.h"
#include "executor/reshard/switch_report.h"

namespace tessera {

/// How a rank's reads from several peers follow one another.
enum class PullOrder : std::uint8_t {
  automatic,  // in steps among GPUs, else together
  together,   // all are begun at once
  in_steps,   // one peer at a time, and nobody is read by two (matched_steps)
};

struct SwitchOptions {
  /// copy_engine and host read peers' memory, send_recv sends messages, all_gather and window
  /// gather where find_gathers can and send messages elsewhere. automatic: copy engines among GPUs
  /// of one host; else whichever of reads (messages between hosts), messages and all-gathers was
  /// fastest in the first switch, which is done every way twice.
  ReshardTransport transport = ReshardTransport::automatic;
  /// Bound of a bucket: of the buffers when casting, of what becomes ready together when
  /// overlapping; a quarter of the stages of what travels merged. 0 = the default of each, and
  /// everything at once.
  std::int64_t bucket_bytes = 0;
  /// Type of floating-point weights on the wire, from switch number `wire_from` on (0 = the first);
  /// before, and by default, the source's.
  std::optional<DType> wire;
  std::int64_t wire_from = 0;
  /// Messages and gathered blocks of fewer bytes travel merged; by default as was fastest by this
  /// transport (benchmarks/results).
  std::optional<std::int64_t> merge_below;
  /// Move only what changed since the last switch, whose destination still has the rest.
  bool incremental = false;
  /// What an incremental switch moves or spares as a whole, at most.
  std::int64_t piece_bytes = std::int64_t{4} << 20;
  /// The largest single copy out of a peer's memory; 0 = as large as they come.
  std::int64_t copy_bytes = 0;
  bool verify = false;  // compare checksums at both ends; a difference is Error (internal)
  PullOrder pulls = PullOrder::automatic;
  /// The switch is to be begun beside the producer: buckets are cut so that every source has its
  /// part of each (overlapped_rounds). The producer writes the tensors in `write_order` (rows of
  /// SwitchPlan::tensors, of all ranks); by default in their own.
  bool overlap = false;
  std::vector<int> write_order;
  double timeout_s = 600;  // what a rank waits for its peers on the host
};

class WeightSwitch {
 public:
  /// Collective over site.host. Keeps references to what `site` points to.
  WeightSwitch(SwitchPlan plan, const SwitchSite& site, const SwitchOptions& options);
  ~WeightSwitch();
  WeightSwitch(const WeightSwitch&) = delete;

  /// Moves the weights. Collective. What the producer's stream was given before the call arrives;
  /// when it returns the destination is complete and sources may be overwritten.
  ReshardReport run(const ReshardHooks& hooks = {});

  /// The overlapped switch. Buckets follow the order of writing; ready(k) says that this rank's
  /// producer stream has been given the last writes to every tensor of bucket k, and is called for
  /// k = 0, 1, ... on every rank. finish() returns when everything has arrived; its report's
  /// exposed_s is what it waited. Needs a block, one host and one type.
  int buckets() const;
  /// The first bucket that holds a part of the tensor (row of SwitchPlan::tensors), before whose
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

  /// Memory that the switch itself holds on this rank, beyond source and destination.
  std::int64_t buffer_bytes() const;
  ReshardTransport transport() const;  // as chosen; automatic before the first run

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
