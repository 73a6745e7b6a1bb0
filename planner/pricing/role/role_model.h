// The model of a role as its prices see it, what all prices of one view of the cluster assume, and
// what ranks hold under each cut of the model.
//
// Assumptions and RoleModel are plain values. PackedSequences, ModelTables and ModelParts keep what
// they have worked out; each belongs to one thread. Tokens, elements; bytes where a name says so.
#pragma once

#include <array>
#include <boost/container_hash/hash.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost_models/few_sequences.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/memory.h"
#include "cost_models/packing.h"
#include "cost_models/paging/paged_cache.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/units.h"
#include "cost_models/vision/tower.h"
#include "planner/engines/fixed_order.h"
#include "planner/pricing/role/groups.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

/// What every price of one view of the cluster assumes.
struct Assumptions {
  PlanRequest request;  // with cluster and constants as the view sees them
  double response = 0, sequence = 0, squared = 0;   // expected tokens, tokens^2 of a sequence
  PromptDealing prompts = PromptDealing::requests;  // of the request's engine
  std::optional<FixedOrder> order;                  // of the request's engine
  std::shared_ptr<const PagedCache> cache;          // nullptr: the engine has no paged one

  const Calibration& calibration() const { return request.calibration; }
  const ClusterSpec& cluster() const { return request.cluster; }
  const EngineTraits& traits() const { return request.traits; }
  const Workload& workload() const { return request.workload; }
};

/// Of a request as it was asked: where the workload wants the entropy, a loss that works in place
/// computes it too.
Assumptions assumptions_of(PlanRequest request);

/// Parameter tables of the models that several evaluators ask for.
class ModelTables {
 public:
  std::shared_ptr<const ParameterTable> of(const ModelSpec& model);

 private:
  std::vector<std::shared_ptr<const ParameterTable>> tables_;
};

/// Micro-batches in expectation over the lengths; sequences of one, kept by token limit.
class PackedSequences {
 public:
  PackedSequences(const Workload& workload, BatchOrder order);
  /// Micro-batches of this token limit that a replica makes of its sequences: a whole number but
  /// where these are few.
  double micro_batches(std::int64_t tokens, const DealtSequences& dealt);
  FewSequences& few() { return few_; }

 private:
  ExpectedPacking packing_;
  FewSequences few_;
  std::map<std::int64_t, double> cache_;
  std::pair<std::int64_t, double> latest_{-1, 0};
};

/// Facts of a role's model that no layout changes.
struct RoleModel {
  Role role = Role::actor;
  ModelSpec spec;
  RoleDTypes dtypes;
  std::shared_ptr<const ParameterTable> table;
  std::int64_t elements = 0;                 // of the table
  double trained_tensors = 0;                // that an optimizer steps over: all, or the adapters'
  std::array<double, kLayerKinds> layers{};  // by kind
  LayerCounts mtp{};                         // layers of multi-token prediction that passes run
  LayerKind last_kind = LayerKind::dense;    // of the last layer
  bool trained = false;
  Fsdp fsdp = Fsdp::fsdp2;  // where PyTorch's FSDP runs it
  bool no_sync = false;     // gradients are reduced once a mini-batch (RolePlan::no_sync)
  Lora lora;
  std::shared_ptr<const ParameterTable> adapter_table;  // where they alone move (AdapterTraits)
  std::int64_t adapter_rank = 0;                        // of those that its passes run
  std::optional<TowerRank> tower;                       // of prompts that have images
  Bytes bucket_bytes;                               // in which weights arrive that are not in place
  std::vector<Phase> phases;                        // in which it computes
  EnumArray<Phase, std::optional<CallKind>> calls;  // of these phases

  /// True where its passes run layers of the kind.
  bool runs(std::size_t kind) const { return layers[kind] != 0 || mtp[kind] != 0; }
};

RoleModel role_model(const PlanRequest& request, Role role, ModelTables& tables);

/// Stages that hold alike layers and are of one kind (first, middle, last).
struct StageClass {
  LayerCounts layers{};
  bool first = false, last = false;
  int index = 0;  // of the first such stage, which holds most micro-batches
  int count = 0;
  std::vector<int> indices;  // of all
  Elements elements;         // of the fullest tensor-parallel rank
};

/// Layers of a stage, and the kind that needs most memory: sparse ones win, and of these attention.
std::pair<std::int64_t, LayerKind> layers_of(const StageClass& stage);

/// By kind of layer.
using LayerElements = std::array<std::int64_t, kLayerKinds>;

/// Ranks of one cut by kind of layer: dense ones, and of the kinds that the model has.
class LayerRanks {
 public:
  void add(std::size_t kind, RankModel rank) {
    places_[kind] = ranks_.size();
    ranks_.push_back(std::move(rank));
  }
  /// Precondition: it is there.
  const RankModel& operator[](std::size_t kind) const { return ranks_[places_[kind]]; }
  const RankModel& front() const { return ranks_.front(); }
  std::size_t size() const { return places_.size(); }

 private:
  std::array<std::size_t, kLayerKinds> places_{};
  std::vector<RankModel> ranks_;
};

/// A map that looks at its latest entry first: candidates that follow one another have much in
/// common. Keys have a hash_value. Entries stay where they are; one thread.
template <typename Key, typename Value>
class LatestFirst {
 public:
  LatestFirst() = default;
  LatestFirst(const LatestFirst&) = delete;
  LatestFirst& operator=(const LatestFirst&) = delete;

  Value& operator[](const Key& key) { return of(key).first; }
  /// The key's value, and whether it was added just now.
  std::pair<Value&, bool> of(const Key& key) {
    bool added = false;
    if (latest_ == nullptr || latest_->first != key) {
      const auto entry = all_.try_emplace(key);
      latest_ = &*entry.first;
      added = entry.second;
    }
    return {latest_->second, added};
  }
  void clear() {
    latest_ = nullptr;
    all_.clear();
  }

 private:
  std::unordered_map<Key, Value, boost::hash<Key>> all_;
  std::pair<const Key, Value>* latest_ = nullptr;
};

/// What ranks and stages hold of a model under each cut: values that depend on the cut alone, kept.
/// References that it hands out hold as long as it lives.
class ModelParts {
 public:
  /// Keeps a reference to `model`. `dealt`: a plan's own, which outlives it; nullptr = there is
  /// none.
  ModelParts(const RoleModel& model, const EngineTraits& traits,
             const DealtLayout* dealt = nullptr);

  const RoleModel& model() const { return model_; }
  /// The stages of a plan where it cuts the candidate's layout in its own way; else nullptr.
  const std::vector<LayerRange>* own_cut(const Candidate& candidate) const;
  /// The candidate's, with such stages.
  ParallelLayout layout(const Candidate& candidate) const;
  const ShardElements& shards(int tp, int ep, int etp);
  const std::vector<StageClass>& stages(const Candidate& candidate);
  /// Of the role's adapters in one layer. Precondition: it has some.
  const LayerElements& adapters(int tp);
  /// A rank of these degrees; the candidate's other choices do not matter.
  const LayerRanks& ranks(const Candidate& candidate);

 private:
  std::vector<StageClass> stage_classes(const Candidate& candidate);

  const RoleModel& model_;
  EngineTraits traits_;
  const DealtLayout* dealt_;
  std::vector<StageClass> own_stages_;  // of dealt_'s cut
  template <std::size_t n, typename Value>
  using ByDegrees = LatestFirst<std::array<int, n>, Value>;
  ByDegrees<3, ShardElements> shards_;            // tp, ep, etp
  ByDegrees<6, std::vector<StageClass>> stages_;  // pp, vpp, head, tp, ep, etp
  std::map<int, LayerElements> adapters_;         // by tp
  ByDegrees<6, LayerRanks> ranks_;                // tp, cp, ep, etp, sequence, ulysses
};

/// Of a stage's fullest tensor-parallel rank: the model's elements, or those of its `adapters`
/// alone; and of the fullest stage.
Elements held_of_stage(ModelParts& parts, const Candidate& candidate, const StageClass& stage,
                       bool adapters);
Elements fullest_stage(ModelParts& parts, const Candidate& candidate, bool adapters);

/// Elements that all ranks of a candidate hold together.
/// Precondition: it is not cut by FSDP.
double held_in_all(ModelParts& parts, const Candidate& candidate, bool adapters);

/// By stage, the part of all that the model is read for which one rank gives, where every rank of a
/// stage gives as much: what several ranks hold (norms, shared KV heads) is given by all of them,
/// and a tied embedding by both its ends, so that the fuller of them gives as little as possible.
std::vector<double> given_by_stage(ModelParts& parts, const Candidate& candidate, bool adapters);

/// Adapters of so many layers.
Elements adapter_sum(const LayerElements& adapters, const LayerCounts& layers);

}  // namespace tessera
