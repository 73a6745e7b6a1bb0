// One rank's parameters: the part that its layout gives it, in one arena of memory.
//
// In memory the sharded dim of every tensor is outermost: o_proj and down_proj are [in, out], all
// else is as in the checkpoint. Sizes in elements. Owned by the role's worker; copies share
// storage. Not thread-safe; different ranks' Weights are independent.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/split.h"
#include "executor/arena/arena_layout.h"
#include "executor/weights/low_rank.h"

namespace tessera {

class Communicator;     // executor/comm/communicator.h
struct ParallelGroups;  // executor/comm/groups.h

at::ScalarType scalar_type(DType type);
DType dtype_of(at::ScalarType type);

/// Table rows of one layer's tensors; -1 where the model has none.
struct LayerRows {
  int input_norm = -1, post_norm = -1, q_norm = -1, k_norm = -1;
  int q = -1, k = -1, v = -1, o = -1, gate = -1, up = -1, down = -1;
  int q_bias = -1, k_bias = -1, v_bias = -1, o_bias = -1;
  int gate_bias = -1, up_bias = -1, down_bias = -1;
  /// Layers with routed experts: the router, and by expert of the model its three matrices. gate,
  /// up and down are then the shared expert's, and shared_gate is the gate on its output.
  int router = -1, shared_gate = -1;
  std::vector<int> expert_gates, expert_ups, expert_downs;

  bool routed() const { return router >= 0; }
};

struct ModelRows {
  int embedding = -1, final_norm = -1;
  int head = -1;  // lm_head, the tied embedding, or the value head
  std::vector<LayerRows> layers;
};

struct Weights {
  ParameterTable table;
  ParallelLayout layout;
  RankCoord coord;
  DType dtype = DType::fp32;
  ArenaLayout arena;
  torch::Tensor storage;               // 1-D, `dtype`; arena.bytes long, or more (placed_weights.h)
  std::vector<torch::Tensor> tensors;  // by table row, memory order; undefined where not held
  ModelRows rows;
  torch::Tensor inverse_frequencies;  // of the rotary embedding, fp32 [head_dim / 2]
  std::vector<LowRank> adapters;      // by table row: added to its products; empty = nothing is
  /// Rows whose gradients are partial sums on each tensor-parallel rank, beside those that `rows`
  /// tells of.
  std::vector<int> partial_rows;

  const ModelSpec& model() const { return table.model; }
  torch::Device device() const { return storage.device(); }
  bool holds(int row) const { return tensors[static_cast<std::size_t>(row)].defined(); }
  /// A row's tensor; undefined for row -1 and where not held.
  torch::Tensor tensor(int row) const {
    return row < 0 ? torch::Tensor() : tensors[static_cast<std::size_t>(row)];
  }
  /// What is added to a row's products; nullptr = nothing, and of row -1.
  const LowRank* adapter(int row) const {
    if (row < 0 || adapters.empty()) return nullptr;
    const LowRank& found = adapters[static_cast<std::size_t>(row)];
    return found.defined() ? &found : nullptr;
  }
  /// The tensor of a checkpoint name. Precondition: this rank holds it.
  const torch::Tensor& at(const std::string& name) const;
};

/// One tensor per table row that shares `storage` (1-D, arena.bytes long) and is no view for
/// autograd, so that each may be a leaf: parameters, or their gradients in an arena of the same
/// layout.
std::vector<torch::Tensor> arena_tensors(const ArenaLayout& arena, std::size_t rows,
                                         const torch::Tensor& storage);

/// The parts of any table's tensors that the rank at `coord` computes with, zero filled: without
/// `rows`, by which a model's are found.
Weights make_parameters(const ParameterTable& table, const ParallelLayout& layout,
                        const RankCoord& coord, DType dtype, torch::Device device,
                        torch::Tensor storage = {});

/// Weights of a model that the rank at `coord` computes with, zero filled. An arena of this layout
/// that exists already (the rollout's buffer) may be passed as `storage`.
Weights make_weights(const ParameterTable& table, const ParallelLayout& layout,
                     const RankCoord& coord, DType dtype, torch::Device device,
                     torch::Tensor storage = {});

/// The rank's parts of a Hugging Face folder's tensors, cast to the weights' type. Appends what is
/// missing or misshapen. A value head that the folder does not have (a critic that starts from an
/// actor) is drawn as `initialize` does.
void load_weights(Weights& weights, const std::filesystem::path& folder, std::uint64_t seed,
                  Problems& problems);

/// Normal(0, deviation) matrices, zero biases, unit norms; the values of a tensor depend on the
/// seed, its name and the kind of `device` that draws them only, never on the layout.
void initialize(Weights& weights, std::uint64_t seed, double deviation = 0.02,
                torch::Device device = torch::kCPU);

/// Calls `sink` on the role's rank with tp = pp = dp = 0 for every tensor in table order, whole, in
/// checkpoint order of dims, contiguous on the CPU. Every rank of the role may call it: collective
/// over the first replica (tp and pp), where experts lie apart over the role; one tensor at a time.
void gather_weights(const Weights& weights, const ParallelGroups& groups,
                    const std::function<void(const Parameter&, const torch::Tensor&)>& sink);

/// Query heads and KV heads of a tensor-parallel rank, and the local KV head of each query head.
struct HeadRange {
  Interval query, kv;
  std::vector<std::int64_t> kv_of_query;
  /// True when every local KV head serves equally many consecutive local query heads.
  bool uniform() const;
};
HeadRange head_range(const ModelSpec& model, int tp, int tp_rank);

/// Vocabulary rows that the rank's embedding and lm_head hold.
Interval vocab_range(const Weights& weights);

/// Rows whose gradients are partial sums on each tensor-parallel rank and must be added up once per
/// optimizer step: qk-norms, K and V projections whose heads several ranks share, routers,
/// Weights::partial_rows, and with sequence parallelism all norms, the biases of row-parallel
/// projections and the shared expert's gate. All other replicated tensors (norms, biases after a
/// reduction, the value head) have equal gradients.
std::vector<int> partial_gradient_rows(const Weights& weights);

/// Adds up `gradients` (by table row, memory order, any dtype) of partial_gradient_rows over the
/// tensor-parallel group, and a tied embedding's over the first and the last stage. Every rank of
/// the replica calls it; the result has the same bits wherever a value is held.
void reduce_shared_gradients(const Weights& weights, const ParallelGroups& groups,
                             std::vector<torch::Tensor>& gradients);
/// Its two halves: some of partial_gradient_rows, and the tied embedding over `ends`.
void reduce_partial_gradients(const Weights& weights, Communicator* tp, std::span<const int> rows,
                              std::vector<torch::Tensor>& gradients);
void reduce_tied_embedding(const Weights& weights, Communicator* ends,
                           std::vector<torch::Tensor>& gradients);

/// The range of the row's outermost local dim that this rank counts in norms and sums over a
/// replica: of all its ranks of one cp that hold an element exactly one counts it, of those that
/// hold an expert exactly one of each edp (ExpertCoord). Empty where others do.
Interval counted_range(const Parameter& parameter, const ParallelLayout& layout,
                       const RankCoord& coord);
/// The same over a whole role without shards: of all its ranks exactly one counts an element.
Interval counted_in_role(const Parameter& parameter, const ParallelLayout& layout,
                         const RankCoord& coord);

}  // namespace tessera
