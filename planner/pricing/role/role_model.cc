#include "planner/pricing/role/role_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "cost_models/adapters.h"
#include "cost_models/lengths.h"
#include "planner/engines/engine.h"
#include "planner/pricing/role/full_gather.h"
#include "planner/pricing/role/role_layout.h"

namespace tessera {

Assumptions assumptions_of(PlanRequest request) {
  Assumptions assumed{.request = std::move(request)};
  EngineTraits& traits = assumed.request.traits;
  const Workload& workload = assumed.workload();
  if (traits.loss.kernel == LossKernel::in_place && workload.entropy) {
    traits.loss.kernel = LossKernel::with_entropy;
  }
  const auto prompt = static_cast<double>(workload.prompt_tokens);
  assumed.response = mean_length(workload.response_tokens);
  assumed.sequence = prompt + assumed.response;
  assumed.squared = prompt * prompt + 2 * prompt * assumed.response +
                    mean_square_length(workload.response_tokens);
  const Engine& engine = engine_named(assumed.request.engine);
  assumed.prompts = engine.prompts;
  assumed.order = engine.fixed_order;
  const bool generates =
      std::any_of(workload.dataflow.begin(), workload.dataflow.end(),
                  [](const Call& call) { return call.kind == CallKind::generate; });
  if (const std::int64_t block = traits.decode.block_tokens; generates && block > 0) {
    assumed.cache = std::make_shared<const PagedCache>(workload, block);
  }
  return assumed;
}

std::shared_ptr<const ParameterTable> ModelTables::of(const ModelSpec& model) {
  for (const auto& table : tables_) {
    if (table->model == model) return table;
  }
  tables_.push_back(std::make_shared<const ParameterTable>(parameter_table(model)));
  return tables_.back();
}

PackedSequences::PackedSequences(const Workload& workload, BatchOrder order)
    : packing_(workload.response_tokens, workload.prompt_tokens),
      few_(workload.response_tokens, workload.prompt_tokens, order) {}

double PackedSequences::micro_batches(std::int64_t tokens, const DealtSequences& dealt) {
  if (few_.are(dealt)) return few_.micro_batches(dealt, tokens);
  if (tokens != latest_.first) {  // most calls ask for the same limit again
    const auto [each, added] = cache_.try_emplace(tokens, 0.0);
    if (added) each->second = packing_.sequences(tokens);
    latest_ = *each;
  }
  const double most = std::max(1.0, dealt.sequences);
  const double count = packing_.micro_batches(dealt.sequences, dealt.replicas, latest_.second);
  return std::clamp(count, 1.0, most);
}

namespace {

// What gathered tensors are handed to the rollout in, where an engine gathers them whole; else what
// the transport stages.
Bytes bucket_of(const PlanRequest& request, const Lora& rollout) {
  const std::vector<Role> roles = roles_of(request.workload);
  const bool trained = std::find(roles.begin(), roles.end(), Role::actor) != roles.end();
  if (!trained || (rollout.moves_adapters() && !request.traits.adapters.minimal)) return {};
  if (!gathers_whole(request.engine)) return travel_stages(request.reshard);
  return gather_bucket_bytes(request.engine, model_of(request, Role::actor),
                             dtypes_of(request, Role::actor), request.reshard.bucket);
}

}  // namespace

RoleModel role_model(const PlanRequest& request, Role role, ModelTables& tables) {
  const Workload& workload = request.workload;
  RoleModel model{.role = role, .spec = model_of(request, role)};
  model.dtypes = dtypes_of(request, role);
  model.fsdp = request.choices.fsdp[role];
  model.no_sync = request.choices.no_sync[role];
  model.table = tables.of(model.spec);
  model.elements = model.table->elements();
  model.trained_tensors = static_cast<double>(model.table->rows.size());
  if (const auto lora = request.lora.find(role); lora != request.lora.end()) {
    model.lora = lora->second;
    const bool left_out = role == Role::reference || (role == Role::rollout && model.lora.merged);
    model.adapter_rank = left_out ? 0 : model.lora.rank;
    model.trained_tensors = static_cast<double>(adapter_tensors(*model.table, model.lora));
    if (request.traits.adapters.minimal && model.lora.moves_adapters() &&
        has_adapter_table(*model.table, model.lora)) {
      model.adapter_table =
          std::make_shared<const ParameterTable>(adapter_table(*model.table, model.lora));
    }
  }
  if (workload.images.per_prompt > 0) {
    model.tower = tower_rank(model.spec, model.dtypes.param, request.traits);
  }
  if (role == Role::rollout) model.bucket_bytes = bucket_of(request, model.lora);
  for (std::int64_t layer = 0; layer < model.spec.layers; ++layer) {
    model.last_kind = kind_of_layer(model.spec, layer);
    model.layers[static_cast<std::size_t>(model.last_kind)] += 1;
  }
  model.mtp = mtp_counts(model.spec);
  model.trained = is_trained(workload, role);
  model.phases = phases_of(workload, role);
  for (const Call& call : workload.dataflow) {
    const Role runs = call.kind == CallKind::generate ? Role::rollout : call.role;
    if (runs == role && call.kind != CallKind::compute) {
      model.calls[call.phase] = call.kind;
    }
  }
  return model;
}

std::pair<std::int64_t, LayerKind> layers_of(const StageClass& stage) {
  constexpr std::array kWidestFirst{LayerKind::sparse,
                                    LayerKind::shared_choice_sparse,
                                    LayerKind::chosen_sparse,
                                    LayerKind::all_sparse,
                                    LayerKind::window_sparse,
                                    LayerKind::chosen_hash,
                                    LayerKind::all_hash,
                                    LayerKind::window_hash,
                                    LayerKind::linear_sparse,
                                    LayerKind::experts_alone,
                                    LayerKind::dense,
                                    LayerKind::shared_choice_dense,
                                    LayerKind::linear_dense,
                                    LayerKind::mlp_alone,
                                    LayerKind::state_space_alone,
                                    LayerKind::attention_alone};
  const auto held = [&](LayerKind kind) {
    return stage.layers[static_cast<std::size_t>(kind)] > 0;
  };
  const auto* const widest = std::find_if(kWidestFirst.begin(), kWidestFirst.end(), held);
  return {std::accumulate(stage.layers.begin(), stage.layers.end(), std::int64_t{0}),
          widest == kWidestFirst.end() ? LayerKind::dense : *widest};
}

ModelParts::ModelParts(const RoleModel& model, const EngineTraits& traits, const DealtLayout* dealt)
    : model_(model), traits_(traits), dealt_(dealt) {}

const std::vector<LayerRange>* ModelParts::own_cut(const Candidate& candidate) const {
  const bool own =
      dealt_ != nullptr && !dealt_->stages.empty() && same_degrees(dealt_->layout, candidate);
  return own ? &dealt_->stages : nullptr;
}

ParallelLayout ModelParts::layout(const Candidate& candidate) const {
  ParallelLayout layout = layout_of(candidate, model_.spec.layers);
  if (const auto* own = own_cut(candidate)) layout.stages = *own;
  return layout;
}

const ShardElements& ModelParts::shards(int tp, int ep, int etp) {
  const auto [shards, added] = shards_.of({tp, ep, etp});
  if (added) shards = shard_elements(*model_.table, tp, ep, etp);
  return shards;
}

const std::vector<StageClass>& ModelParts::stages(const Candidate& candidate) {
  if (own_cut(candidate) != nullptr) {
    if (own_stages_.empty()) own_stages_ = stage_classes(candidate);
    return own_stages_;
  }
  const auto [stages, added] = stages_.of({candidate.pp, candidate.vpp, candidate.head_layers,
                                           candidate.tp, candidate.ep, candidate.etp});
  if (added) stages = stage_classes(candidate);
  return stages;
}

std::vector<StageClass> ModelParts::stage_classes(const Candidate& candidate) {
  std::vector<StageClass> classes;
  const ParallelLayout layout = this->layout(candidate);
  const ShardElements& parts = shards(candidate.tp, candidate.ep, candidate.etp);
  for (int index = 0; index < candidate.pp; ++index) {
    StageClass stage{.layers = run_layers(model_.spec, layout, index),
                     .first = index == 0,
                     .last = index == candidate.pp - 1,
                     .index = index,
                     .count = 1,
                     .indices = {index},
                     .elements = {}};
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const StageClass& other) {
      return other.layers == stage.layers && other.first == stage.first && other.last == stage.last;
    });
    if (same == classes.end()) {
      stage.elements = stage_parts(parts, layout, index);
      classes.push_back(stage);
    } else {
      ++same->count;
      same->indices.push_back(index);
    }
  }
  return classes;
}

const LayerElements& ModelParts::adapters(int tp) {
  auto [entry, added] = adapters_.try_emplace(tp);
  if (added) entry->second = adapter_elements(*model_.table, model_.lora, tp);
  return entry->second;
}

const LayerRanks& ModelParts::ranks(const Candidate& candidate) {
  const auto [ranks, added] =
      ranks_.of({candidate.tp, candidate.cp, candidate.ep, candidate.etp,
                 candidate.sequence_parallel ? 1 : 0, candidate.ulysses ? 1 : 0});
  if (!added) return ranks;
  // Adapters' inputs travel by collectives, all of them before their products.
  EngineTraits traits = traits_;
  if (model_.adapter_rank > 0) traits.kernels.overlapped_tensor_parallel = false;
  if (model_.role == Role::rollout) traits.kernels.peer_sums = traits.decode.peer_sums;
  if (model_.role == Role::rollout && traits.decode.server_kernels) {
    traits.kernels.elementwise = ElementwiseKernels::fused;
    traits.kernels.attention = AttentionKernels::best;
    traits.kernels.fused_activation = true;
  }
  for (std::size_t kind = 0; kind < ranks.size(); ++kind) {
    if (kind > 0 && !model_.runs(kind)) continue;
    ranks.add(kind,
              {{.tp = candidate.tp, .cp = candidate.cp, .ep = candidate.ep, .etp = candidate.etp},
               model_.spec,
               model_.dtypes.param,
               candidate.sequence_parallel,
               candidate.ulysses,
               traits,
               model_.adapter_rank,
               static_cast<LayerKind>(kind)});
  }
  return ranks;
}

Elements adapter_sum(const LayerElements& adapters, const LayerCounts& layers) {
  Elements sum;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    sum.dense += layers[kind] * adapters[kind];
  }
  return sum;
}

Elements held_of_stage(ModelParts& parts, const Candidate& candidate, const StageClass& stage,
                       bool adapters) {
  return adapters ? adapter_sum(parts.adapters(candidate.tp), stage.layers) : stage.elements;
}

Elements fullest_stage(ModelParts& parts, const Candidate& candidate, bool adapters) {
  Elements most;
  for (const StageClass& stage : parts.stages(candidate)) {
    const Elements own = held_of_stage(parts, candidate, stage, adapters);
    if (own.total() > most.total()) most = own;
  }
  return most;
}

double held_in_all(ModelParts& parts, const Candidate& candidate, bool adapters) {
  const ParallelLayout layout = parts.layout(candidate);
  const ShardElements& cut = parts.shards(candidate.tp, candidate.ep, candidate.etp);
  double all = 0;
  for (const StageClass& stage : parts.stages(candidate)) {
    for (int rank = 0; rank < candidate.tp; ++rank) {
      const auto held = adapters ? adapter_sum(parts.adapters(candidate.tp), stage.layers).total()
                                 : stage_elements(cut, layout, stage.index, rank);
      all += static_cast<double>(held * stage.count);
    }
  }
  return all * candidate.gpus / (candidate.tp * candidate.pp);
}

std::vector<double> given_by_stage(ModelParts& parts, const Candidate& candidate, bool adapters) {
  std::vector<double> given(static_cast<std::size_t>(candidate.pp));
  for (const StageClass& stage : parts.stages(candidate)) {
    const Elements own = held_of_stage(parts, candidate, stage, adapters);
    for (const int index : stage.indices) {
      given[static_cast<std::size_t>(index)] =
          static_cast<double>(own.dense * candidate.tp + own.expert * candidate.ep * candidate.etp);
    }
  }
  if (candidate.pp > 1 && !adapters) {  // the emptier end first
    const auto& both = parts.shards(candidate.tp, candidate.ep, candidate.etp).both;
    const auto tied =
        static_cast<double>(*std::max_element(both.begin(), both.end()) * candidate.tp);
    const double ends = given.front() + given.back() - tied;
    const double first = std::clamp(ends / 2, given.front() - tied, given.front());
    given.back() = ends - first;
    given.front() = first;
  }
  const double all = std::accumulate(given.begin(), given.end(), 0.0);
  for (double& share : given) share *= candidate.pp / (all * candidate.gpus);
  return given;
}

}  // namespace tessera
