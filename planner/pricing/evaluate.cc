#include "planner/pricing/evaluate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cost_models/spec/node_groups.h"
#include "planner/plan/amounts.h"
#include "planner/pricing/evaluate_state.h"
#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

}  // namespace

std::shared_ptr<const ParameterTable> ModelTables::of(const ModelSpec& model) {
  for (const auto& table : tables_) {
    if (table->model == model) return table;
  }
  tables_.push_back(std::make_shared<const ParameterTable>(parameter_table(model)));
  return tables_.back();
}

CostEvaluator::State::State(const PlanRequest& asked, ModelTables& tables) : request(asked) {
  const Workload& workload = request.workload;
  if (request.traits.loss == LossKernel::in_place && workload.entropy) {
    request.traits.loss = LossKernel::with_entropy;
  }
  const auto prompt = static_cast<double>(workload.prompt_tokens);
  response = mean_length(workload.response_tokens);
  sequence = prompt + response;
  packing.emplace(workload.response_tokens, workload.prompt_tokens);
  squared = prompt * prompt + 2 * prompt * response + mean_square_length(workload.response_tokens);
  for (const Role role : roles_of(workload)) {
    const ModelSpec spec = model_of(request, role);
    RoleModel& model = models[role];
    model.spec = spec;
    model.dtypes = dtypes_of(request, role);
    model.table = tables.of(spec);
    model.elements = model.table->elements();
    if (const auto lora = request.lora.find(role); lora != request.lora.end()) {
      model.lora = lora->second;
      const bool left_out = role == Role::reference || (role == Role::rollout && model.lora.merged);
      model.adapter_rank = left_out ? 0 : model.lora.rank;
    }
    for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
      model.last_kind = kind_of_layer(spec, layer);
      model.layers[static_cast<std::size_t>(model.last_kind)] += 1;
    }
    model.trained = is_trained(workload, role);
    model.phases = phases_of(workload, role);
    for (const Call& call : workload.dataflow) {
      const Role runs = call.kind == CallKind::generate ? Role::rollout : call.role;
      if (runs == role && call.kind != CallKind::compute) model.calls[at(call.phase)] = call.kind;
    }
  }
}

RankModel CostEvaluator::State::rank_model(const RoleModel& model, const LayerRun& run) const {
  return {.model = model.spec,
          .tp = run.tp,
          .dtype = model.dtypes.param,
          .cp = run.cp,
          .ep = run.ep,
          .etp = run.etp,
          .sequence_parallel = run.sequence_parallel,
          .ulysses = run.ulysses,
          .traits = request.traits,
          .adapter_rank = model.adapter_rank};
}

const RankModel& CostEvaluator::State::rank_model(RoleModel& model, const LayerRun& run,
                                                  LayerKind kind) {
  auto [entry, added] = model.ranks.try_emplace({run, kind});
  if (added) {
    entry->second = rank_model(model, run);
    entry->second.kind = kind;
  }
  return entry->second;
}

const ShardElements& CostEvaluator::State::shards(RoleModel& model, int tp, int ep, int etp) {
  auto [entry, added] = model.shards.try_emplace({tp, ep, etp});
  if (added) entry->second = shard_elements(*model.table, tp, ep, etp);
  return entry->second;
}

const std::vector<StageClass>& CostEvaluator::State::stages(RoleModel& model,
                                                            const Candidate& candidate) {
  const std::array<int, 6> key = {candidate.tp, candidate.ep,  candidate.etp,
                                  candidate.pp, candidate.vpp, candidate.head_layers};
  if (model.latest_stages != nullptr && model.latest_key == key) return *model.latest_stages;
  auto [entry, added] = model.stages.try_emplace(key);
  std::vector<StageClass>& classes = entry->second;
  model.latest_key = key;
  model.latest_stages = &classes;
  if (!added) return classes;
  const ParallelLayout layout = layout_of(candidate, model.spec.layers);
  const ShardElements& parts = shards(model, candidate.tp, candidate.ep, candidate.etp);
  for (int index = 0; index < candidate.pp; ++index) {
    StageClass stage{.layers = stage_layers(model.spec, layout, index),
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

Elements CostEvaluator::State::adapters_of(RoleModel& model, int tp, const LayerCounts& layers) {
  auto [entry, added] = model.adapters.try_emplace(tp);
  if (added) entry->second = adapter_elements(*model.table, model.lora, tp);
  Elements sum;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    sum.dense += layers[kind] * entry->second[kind];
  }
  return sum;
}

Elements CostEvaluator::State::trained_elements(RoleModel& model, const Candidate& candidate,
                                                const StageClass& stage) {
  if (!model.lora.used()) return stage.elements;
  return adapters_of(model, candidate.tp, stage.layers);
}

Candidate in_call(Candidate candidate, bool trains) {
  if (trains && candidate.update_tokens > 0) candidate.tokens = candidate.update_tokens;
  candidate.update_tokens = 0;
  return candidate;
}

// 1 / the speed of a rank while `used` GPUs of the candidate's block work `part` of the time.
double CostEvaluator::State::slowdown(const Candidate& candidate, double part) const {
  const auto per_node = static_cast<double>(cluster().gpus_per_node);
  const double busy = std::min<double>(candidate.gpus, per_node) * part;
  return 1 / core_share(calibration(), busy, per_node - busy);
}

// Pages of an unmapped rollout come back before it generates: 1.05 ms for 494 MB (4 H200,
// benchmarks/results/h200x4-switch-options.json).
double CostEvaluator::State::mapping_seconds(RoleModel& model, const Candidate& candidate) {
  constexpr double kBytesPerSecond = 4.7e11;
  if (!candidate.offload.parameters) return 0;
  std::int64_t most = 0;
  for (const StageClass& stage : stages(model, candidate)) {
    most = std::max(most, stage.elements.total());
  }
  return static_cast<double>(most * size_of(model.dtypes.param)) / kBytesPerSecond;
}

CostEvaluator::State::Timed CostEvaluator::State::phase_time(RoleModel& model,
                                                             const Candidate& candidate,
                                                             Phase phase) {
  switch (model.calls[at(phase)].value_or(CallKind::compute)) {
    case CallKind::generate: {
      Timed time = generate(model, candidate);
      time.seconds += mapping_seconds(model, candidate);
      return time;
    }
    case CallKind::infer:
      return infer(model, in_call(candidate, false));
    case CallKind::train:
      return update(model, in_call(candidate, true));
    case CallKind::compute:
      break;
  }
  return {};
}

CostEvaluator::CostEvaluator(const PlanRequest& request) {
  ModelTables tables;
  add_states(request, tables);
}
CostEvaluator::CostEvaluator(const PlanRequest& request, ModelTables& tables) {
  add_states(request, tables);
}
CostEvaluator::~CostEvaluator() = default;

void CostEvaluator::add_states(const PlanRequest& request, ModelTables& tables) {
  states_.push_back(std::make_unique<State>(request, tables));
  const auto views = static_cast<int>(pool_views(request.cluster).size());
  for (int view = 1; view < views; ++view) {
    PlanRequest seen = request;
    seen.cluster = seen_from(request.cluster, view);
    seen.calibration = seen_from(request.calibration, view);
    states_.push_back(std::make_unique<State>(seen, tables));
  }
}

const PlanRequest& CostEvaluator::request() const { return state(0).request; }
const PlanRequest& CostEvaluator::request(int view) const { return state(view).request; }

void CostEvaluator::recalibrate(const Calibration& calibration) {
  for (std::size_t view = 0; view < states_.size(); ++view) {
    State& seen = *states_[view];
    seen.request.calibration = seen_from(calibration, static_cast<int>(view));
    seen.decodes.clear();
    seen.decode_computes.clear();
    seen.decode_communications.clear();
    for (auto& [role, model] : seen.models) {
      for (auto& priced : model.micro_batches) priced.clear();
      model.latest = {};
    }
  }
}

RoleCost CostEvaluator::cost(const Candidate& candidate) const {
  return state(candidate.view).cost(candidate, std::numeric_limits<std::int64_t>::max());
}

RoleCost CostEvaluator::State::cost(const Candidate& candidate, std::int64_t limit) {
  RoleModel& model = models.at(candidate.role);
  const auto bytes = [&](Phase phase) { return most_bytes(model, candidate, phase); };
  RoleCost cost;
  // No role computes while a checkpoint is saved; only actor and rollout have work in a switch.
  cost.resident = bytes(Phase::save_checkpoint);
  cost.switching = cost.peak = cost.resident;
  if (cost.resident > limit) return cost;
  cost.switching = bytes(Phase::reshard);
  cost.may_shrink = model.trained && gradients_come_and_go(candidate) &&
                    mini_batch_parts(in_call(candidate, true)) > 1;
  for (const Phase phase : model.phases) {
    cost.bytes[at(phase)] = bytes(phase);
    cost.peak = std::max(cost.peak, cost.bytes[at(phase)]);
  }
  if (cost.switching > limit) return cost;
  for (const Phase phase : model.phases) {
    if (cost.bytes[at(phase)] > limit) continue;
    const auto timed = phase_time(model, candidate, phase);
    cost.seconds[at(phase)] = timed.seconds;
    cost.communication[at(phase)] = timed.communication;
  }
  return cost;
}

PhaseSeconds CostEvaluator::seconds(const Candidate& candidate) const {
  State& seen = state(candidate.view);
  RoleModel& model = seen.models.at(candidate.role);
  PhaseSeconds seconds{};
  for (const Phase phase : model.phases) {
    seconds[at(phase)] = seen.phase_time(model, candidate, phase).seconds;
  }
  return seconds;
}

int CostEvaluator::fullest_stage(const Candidate& candidate, Phase phase) const {
  State& seen = state(candidate.view);
  return seen.fullest(seen.models.at(candidate.role), candidate, phase).stage->index;
}

MemoryUse CostEvaluator::memory(const Candidate& candidate, Phase phase, int stage) const {
  State& seen = state(candidate.view);
  RoleModel& model = seen.models.at(candidate.role);
  const LayerCounts layers =
      stage_layers(model.spec, layout_of(candidate, model.spec.layers), stage);
  for (const StageClass& each : seen.stages(model, candidate)) {
    if (each.layers == layers && each.first == (stage == 0) &&
        each.last == (stage == candidate.pp - 1)) {
      return seen.stage_memory(model, candidate, each, stage, phase);
    }
  }
  return {};
}

MemoryUse CostEvaluator::memory(const Candidate& candidate, Phase phase) const {
  State& seen = state(candidate.view);
  return seen.fullest(seen.models.at(candidate.role), candidate, phase).use;
}

std::int64_t CostEvaluator::reshard_bytes(const Candidate& actor, const Candidate& rollout) const {
  return state(actor.view).reshard_bytes(actor, rollout);
}

SwitchBytes CostEvaluator::switch_bytes(const Candidate& actor, const Candidate& rollout) const {
  return state(actor.view).switch_bytes(actor, rollout);
}

std::size_t CostEvaluator::tensors(Role role) const {
  return state(0).models.at(role).table->rows.size();
}

Evaluator CostEvaluator::evaluator() const {
  std::vector<std::int64_t> limits;
  for (const auto& seen : states_) limits.push_back(memory_limit(seen->request));
  return {[this, limits](const Candidate& candidate) {
            return state(candidate.view)
                .cost(candidate, limits[static_cast<std::size_t>(candidate.view)]);
          },
          [this](const Candidate& candidate) { return seconds(candidate); },
          [this](const Candidate& actor, const Candidate& rollout, bool shared) {
            return reshard_seconds(actor, rollout, shared);
          }};
}

std::int64_t usable_memory(const ClusterSpec& cluster, const Calibration& calibration) {
  return static_cast<std::int64_t>(static_cast<double>(cluster.device.memory.value) *
                                   (1 - calibration.fragmentation.value));
}

std::int64_t usable_memory(const ClusterSpec& cluster, const Calibration& calibration, int rank) {
  if (cluster.groups.empty()) return usable_memory(cluster, calibration);
  const int view = view_of(cluster, std::vector<int>{rank});
  return usable_memory(seen_from(cluster, view), seen_from(calibration, view));
}

std::int64_t memory_limit(const PlanRequest& request) {
  return usable_memory(request.cluster, request.calibration) -
         static_cast<std::int64_t>(request.calibration.reserve_bytes.value);
}

std::string of_usable(const PlanRequest& request, std::int64_t bytes) {
  const std::int64_t usable = usable_memory(request.cluster, request.calibration);
  return in_gib(bytes + usable - memory_limit(request)) + " of " + in_gib(usable);
}

double host_call_seconds(const Workload& workload, const Calibration& calibration) {
  constexpr double kSequencesPerDispatch = 25;
  return calibration.dispatch_s.value *
         (1 + static_cast<double>(workload.sequences()) / kSequencesPerDispatch);
}

PhaseSeconds compute_call_seconds(const PlanRequest& request) {
  PhaseSeconds seconds;
  for (const Call& call : request.workload.dataflow) {
    if (call.kind == CallKind::compute) {
      seconds[at(call.phase)] = host_call_seconds(request.workload, request.calibration);
    }
  }
  return seconds;
}

}  // namespace tessera
