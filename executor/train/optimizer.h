// AdamW on one rank's shard space: global norm and clipping, fp32 master weights.
//
// Without ZeRO the shard space is the rank's arena, wherever the weights themselves lie; with
// ZeRO-1 and 2 this rank's part of every layer, with FSDP its stored arena (shard_map.h). Gradients
// are summed over data-parallel ranks: whoever makes them divides by their number. Decoupled decay
// and bias correction as torch.optim.AdamW; decay only on rows that the parameter table marks. On a
// GPU norm and update are one kernel each over all parameters, and the host waits once, at the end.
// With ZeRO-1 and 2 the weights that others updated come on the side stream, beside what follows
// the step. States may live in host memory (offload), where they stay: the host computes the step
// piece by piece, the next piece's gradients and the last one's weights travelling through pinned
// memory meanwhile. Collective over the role; one thread per rank.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "executor/comm/groups.h"
#include "executor/sharding/sharded_gradients.h"
#include "executor/sharding/sharded_parameters.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/placed_chunks.h"
#include "executor/weights/weights.h"

namespace tessera {

/// Defaults are verl's (actor.optim, actor.grad_clip).
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;  // 0 = no clipping
  bool offload = false;    // master weights and moments in host memory
  /// Offload: elements that travel at a time, 64 MiB of gradients: long enough for the link's full
  /// rate. A multiple of 64.
  std::int64_t piece_elements = std::int64_t{1} << 24;
};

/// The state that has to be saved: this rank's shard space.
struct OptimizerState {
  std::int64_t count = 0;                     // elements
  std::int64_t steps = 0;                     // finished ones
  torch::Tensor master, exp_avg, exp_avg_sq;  // fp32 [count]
};

struct StepResult {
  double grad_norm = 0;  // before clipping, of the whole model
  bool applied = true;   // false: the norm was not finite, nothing changed
};

/// Table rows of this rank whose last writes of the step are on the stream.
using RowsWritten = std::function<void(std::span<const int> rows)>;

class Optimizer {
 public:
  /// Keeps references. Makes the weights' tensors leaves whose gradients accumulate in fp32
  /// buffers. Master weights start from the weights as they are now. `parameters` where FSDP shards
  /// them.
  Optimizer(Weights& weights, const ParallelGroups& groups, const AdamWOptions& options,
            const ShardingOptions& sharding = {}, ShardedParameters* parameters = nullptr);

  /// By table row, fp32; undefined where not held, or (ZeRO-2, FSDP) between backward passes.
  const std::vector<torch::Tensor>& gradients() const { return sharded_.rows(); }
  ShardedGradients& sharded() { return sharded_; }
  void zero_gradients() { sharded_.zero(); }

  /// Reduces the gradients over the role and updates the weights of every rank. Afterwards the
  /// gradients of this rank's shard space are reduced, and weights are there once awaited.
  /// `written` is called once per bucket, in order, unless the step is not applied; on a GPU while
  /// later buckets are still to be updated, and their weights need not be awaited.
  StepResult step(double learning_rate, const RowsWritten& written = {});
  /// The current stream may read the weights of a bucket, of all.
  void await_weights(const ShardBucket& bucket) const;
  void await_weights() const { side_.wait(published_); }

  /// After a step: every held row's whole reduced gradient, as on one rank. Collective.
  std::vector<torch::Tensor> whole_gradients();

  /// Shares storage with the optimizer.
  const OptimizerState& state() const { return state_; }
  /// Copies; the shard spaces must be equal. The weights are set from the master weights.
  void load_state(const OptimizerState& state);
  /// The tensors of state() were written: as after `steps` steps. The weights are set from the
  /// master weights. Collective.
  void state_restored(std::int64_t steps);
  std::int64_t bytes() const;  // gradients and states
  /// The weights' own copy that the step writes, and master weights that are those: they leave the
  /// device with the weights.
  void park_in(Parked& parked);
  const ShardMap& map() const { return map_; }

 private:
  std::int64_t place_in_values(const ShardSegment& segment) const;
  std::vector<fused::PlacedChunk> updated_chunks(const ShardBucket& bucket) const;
  void find_runs();
  void find_chunks();
  void cut_pieces();
  void make_bucket_tables();
  double global_norm();
  void update(double learning_rate, double norm);
  void update_by_bucket(double learning_rate, const RowsWritten& written);
  void update_on_device(double learning_rate, const torch::Tensor& chunks);
  void update_on_host(double learning_rate);
  void adamw_by_torch(const std::vector<fused::Chunk>& chunks, const torch::Tensor& gradients,
                      std::int64_t origin, double learning_rate);
  void write_weights();
  void finish_weights(const RowsWritten& written);
  void publish_weights();
  void publish(const ShardBucket& bucket);
  void gather(const ShardBucket& bucket);
  void end_publishing();
  bool on_device() const;

  Weights& weights_;
  const ParallelGroups& groups_;
  AdamWOptions options_;
  ShardedParameters* parameters_;
  ShardMap map_;
  ShardedGradients sharded_;
  SideStream side_;
  Communicator* shard_group_;            // collectives on side_
  std::unique_ptr<ShardReader> reader_;  // flat shards: the others' values; nullptr: all-gather
  std::map<std::int64_t, SideStream::Moment> arrived_;  // flat shards: a layer's weights
  SideStream::Moment published_;  // all arrived, and everybody has read this rank's values
  OptimizerState state_;
  torch::Tensor values_;  // in the weights' type: what the step writes
  /// Elements of the shard space, and where they lie in values_: at the same offset, unless the
  /// weights lie in others' memory (placed_weights.h).
  struct Run {
    std::int64_t shard = 0, place = 0, count = 0;
  };
  std::vector<Run> runs_;  // ascending by shard
  /// Offload: neighbouring parts of the shard space, and room for two of them on the host.
  struct Pieces {
    std::vector<std::vector<fused::Chunk>> chunks;
    std::vector<std::vector<Run>> runs;  // of each piece's part of the shard space
    torch::Tensor gradients[2], weights[2];
    SideStream copies;
  } pieces_;
  struct Chunks {
    std::vector<fused::Chunk> counted, updated;
    torch::Tensor counted_table, updated_table;  // on the device; empty where not fused
  } chunks_;
  std::vector<torch::Tensor> bucket_tables_;  // of chunks_.updated, by bucket; made when needed
  torch::Tensor squares_;                     // fp32 scalar on the device
};

}  // namespace tessera
