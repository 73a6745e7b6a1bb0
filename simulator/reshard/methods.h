// Every way to bring a trainer's weights into a rollout's layout, side by side: bytes, seconds,
// memory.
//
// Pure functions over the parameter table; bytes and seconds of the rank that has most. The methods
// are those of published systems (HybridFlow, arXiv 2409.19256, sec. 5.3 and table 2; verl, NeMo
// RL) and of this repository's executor. Weights alone are compared: optimizer states and gradients
// do not move.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/engine_traits.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/reshard/travel.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/units.h"

namespace tessera {

struct Plan;

enum class ReshardMethod {
  gather_all,    // DeepSpeed-Chat: ZeRO-3 over all ranks, each of which gathers the model
  gather_model,  // HybridFlow-V: each rank gathers the model in its TP x PP group
  micro_dp,      // HybridFlow: strided rollout groups, gathers in micro data-parallel groups
  full_tensor,   // FSDP's full_tensor() of fp32 shards, tensor by tensor
  per_tensor,    // gathered and loaded tensor by tensor in the types of the weights
  verl_buckets,  // verl: gathered, packed into one bucket, opened by CUDA IPC
  nemo_buckets,  // NeMo RL: two halves of a buffer, one is loaded while the other fills
  broadcast,     // verl's checkpoint engine: to a rollout on GPUs of its own, in two buckets
  copy_engine,   // ours: only what is missing, read from peers' memory
  window,        // ours: NCCL's windows in symmetric memory
  send_recv,     // ours: messages
};
inline constexpr std::array kReshardMethods{
    ReshardMethod::gather_all,   ReshardMethod::gather_model, ReshardMethod::micro_dp,
    ReshardMethod::full_tensor,  ReshardMethod::per_tensor,   ReshardMethod::verl_buckets,
    ReshardMethod::nemo_buckets, ReshardMethod::broadcast,    ReshardMethod::copy_engine,
    ReshardMethod::window,       ReshardMethod::send_recv};
std::string_view name_of(ReshardMethod method);
/// One line: whose it is and what a rank does.
std::string_view meaning_of(ReshardMethod method);
/// What goes on while the weights move.
std::string_view overlap_of(ReshardMethod method);

/// How the engine of a plan gathers every tensor whole: in which type and bucket, and what its
/// software takes.
struct PlannedGather {
  bool master_weights = false;
  bool over_context = false;  // ZeRO-3 shards lie over context parallel ranks, too
  Bytes bucket;
  HandoverTraits handover;
};
/// Of a plan's reshard; nullopt where its engine gathers nothing whole.
std::optional<PlannedGather> planned_gather(const Plan& plan);

/// Two layouts and where they lie.
struct ReshardQuestion {
  ParameterTable table;
  RankMap from;
  ParallelLayout to;
  std::vector<int> to_ranks;            // the trainer's, in any order, or none of them
  std::optional<RankMap> planned;       // ours, where a plan has dealt the rollout's ranks
  std::optional<PlannedGather> gather;  // of that plan: of verl_buckets and broadcast
  DType weights = DType::bf16;          // of the rollout, and what travels
  DType master = DType::fp32;           // of FSDP's shards
  ClusterSpec cluster;
  Calibration calibration;
  Bytes bucket;            // of every method that has buckets; 0 = each one's default
  std::stop_token stop{};  // ends the comparison by Stopped (cost_models/documents/stopped.h)
};

/// The trainer's ranks as its engine cuts the weights over them that it gathers.
RankMap kept_by_trainer(const ReshardQuestion& question);

struct MethodCost {
  ReshardMethod method = ReshardMethod::gather_all;
  /// Why these layouts cannot be moved so; then nothing else is stated.
  std::string unusable;
  Bytes received, sent;  // of the rank with most
  Bytes total_received;  // of all ranks
  Bytes peak;            // of gathered and received weights with their buffers, beside `redundant`
  Bytes redundant;       // training weights that a rank keeps and does not generate with
  bool fits = true;      // peak and redundant weights are together no more than a GPU has
  Bytes bucket;          // 0 = none
  Seconds wire, software;
  Seconds total;             // what the rollout waits
  std::string_view overlap;  // what goes on meanwhile
};

/// The exact reshard and the counts that all methods are priced from, worked out once.
class ReshardComparison {
 public:
  /// Precondition: both layouts are valid for the model, and all or none of the ranks are shared.
  explicit ReshardComparison(ReshardQuestion question);
  ~ReshardComparison();
  ReshardComparison(const ReshardComparison&) = delete;
  ReshardComparison& operator=(const ReshardComparison&) = delete;

  MethodCost cost(ReshardMethod method) const;
  /// With another bucket; 0 = the method's default.
  MethodCost cost(ReshardMethod method, Bytes bucket) const;
  std::vector<MethodCost> all() const;

  const ReshardQuestion& question() const;
  /// Whether the rollout has GPUs of its own.
  bool apart() const;
  /// The rollout's ranks as ours deals them.
  const RankMap& dealt() const;
  Bytes model_bytes() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

/// Methods whose bucket trades time for memory, at one size.
struct CurvePoint {
  Bytes bucket;
  std::vector<MethodCost> costs;  // of those that are usable here, in the order of kReshardMethods
};

/// Powers of two from 16 MiB up to the model.
std::vector<CurvePoint> bucket_curve(const ReshardComparison& comparison);

}  // namespace tessera
