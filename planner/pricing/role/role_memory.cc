// Bytes of a role's candidates, kept by what decides them.
#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/pricing/role/role_pricer.h"

namespace tessera {
namespace {

// Index into LayoutCosts::working; sharded: by FSDP.
std::size_t working_class(const Candidate& candidate, CallKind kind, bool sharded) {
  return (static_cast<std::size_t>(kind) * 3 + static_cast<std::size_t>(candidate.recompute)) * 8 +
         static_cast<std::size_t>(candidate.zero) * 2 + (sharded ? 1 : 0);
}

}  // namespace

// No role computes while a checkpoint is saved. FSDP1's root may stay gathered while others do.
Bytes RolePricer::held(const Candidate& candidate) {
  Bytes most = most_bytes(candidate, Phase::save_checkpoint);
  if (model_.fsdp != Fsdp::fsdp1) return most;
  for (const Call& call : assumed_.workload().dataflow) {
    if (!model_.calls[call.phase]) most = std::max(most, most_bytes(candidate, call.phase));
  }
  return most;
}

Bytes RolePricer::held_in_reshard(const Candidate& candidate) {
  return most_bytes(candidate, Phase::reshard);
}

RoleCost RolePricer::bytes(const Candidate& candidate, Bytes limit) {
  RoleCost cost;
  // Only actor and rollout have work in a reshard.
  cost.resident = held(candidate);
  cost.in_reshard = cost.peak = cost.resident;
  if (cost.resident > limit) return cost;
  cost.in_reshard = held_in_reshard(candidate);
  cost.may_shrink =
      model_.trained && assumed_.traits().gradients.fresh && mini_batch_parts(candidate) > 1;
  for (const Phase phase : model_.phases) {
    cost.bytes[phase] = most_bytes(candidate, phase);
    cost.peak = std::max(cost.peak, cost.bytes[phase]);
  }
  return cost;
}

const StageClass* RolePricer::stage_class(const Candidate& candidate, int stage) {
  for (const StageClass& each : *of_layout(candidate).layout.stages) {
    if (std::find(each.indices.begin(), each.indices.end(), stage) != each.indices.end()) {
      return &each;
    }
  }
  return nullptr;
}

MemoryUse RolePricer::memory(const Candidate& candidate, Phase phase, int stage) {
  const StageClass* const own = stage_class(candidate, stage);
  if (own == nullptr) return {};
  return stage_memory(of_layout(candidate).layout, candidate, *own, stage, phase,
                      batches(candidate, model_.calls[phase]));
}

MemoryUse RolePricer::asleep(const Candidate& candidate, Phase phase, int stage) {
  const StageClass* const own = stage_class(candidate, stage);
  if (own == nullptr) return {};
  return tessera::asleep(of_layout(candidate).layout, candidate, *own, phase);
}

FullestStage RolePricer::fullest(const Candidate& candidate, Phase phase) {
  const RoleLayout& layout = of_layout(candidate).layout;
  const TrainedBatches trained = batches(candidate, model_.calls[phase]);
  FullestStage best;
  std::int64_t most = -1;
  for (const StageClass& stage : *layout.stages) {
    const MemoryUse use = stage_memory(layout, candidate, stage, stage.index, phase, trained);
    if (use.total() <= most) continue;
    most = use.total();
    best = {&stage, use};
  }
  return best;
}

Bytes RolePricer::most_bytes(const Candidate& candidate, Phase phase) {
  const std::optional<CallKind> call = model_.calls[phase];
  const std::optional<CallKind> held_by = in_memory(assumed_.traits(), call, candidate);
  const std::vector<Bytes>* needed = held_by ? &working_of_stages(candidate, *held_by) : nullptr;
  const std::vector<Bytes>& device = device_of_stages(candidate, phase);
  Bytes most;
  for (std::size_t s = 0; s < device.size(); ++s) {
    most = std::max(most, device[s] + (needed != nullptr ? (*needed)[s] : Bytes{}));
  }
  return most;
}

// The latest first: candidates that follow one another ask for the same again.
const std::vector<Bytes>& RolePricer::device_of_stages(const Candidate& candidate, Phase phase) {
  LayoutCosts& costs = of_layout(candidate);
  const auto known =
      std::find_if(costs.device.rbegin(), costs.device.rend(), [&](const DeviceBytes& bytes) {
        return bytes.phase == phase && bytes.zero == candidate.zero &&
               bytes.offload == candidate.offload;
      });
  if (known != costs.device.rend()) return known->by_stage;
  DeviceBytes fresh{candidate.zero, candidate.offload, phase, {}};
  for (const MemoryUse& held : resident_of_stages(candidate)) {
    fresh.by_stage.emplace_back(
        on_device(costs.layout, held, candidate, phase, model_.calls[phase]).total());
  }
  return costs.device.emplace_back(std::move(fresh)).by_stage;
}

const std::vector<MemoryUse>& RolePricer::resident_of_stages(const Candidate& candidate) {
  LayoutCosts& costs = of_layout(candidate);
  auto& known = costs.resident[index_of(candidate.zero, candidate.offload.parameters)];
  if (known.empty()) {
    for (const StageClass& stage : *costs.layout.stages) {
      known.push_back(resident(costs.layout, candidate, stage));
    }
  }
  return known;
}

const std::vector<Bytes>& RolePricer::working_of_stages(const Candidate& candidate, CallKind kind) {
  LayoutCosts& costs = of_layout(candidate);
  Candidate asked = in_call(candidate, kind == CallKind::train);
  const bool sharded = shard_ranks(candidate, assumed_.traits()) > 1;
  if (kind != CallKind::train) asked.recompute = Recompute::none;
  // ZeRO stages differ in what is gathered, and in what transformers' optimizer step works on.
  const bool modules = assumed_.traits().kernels.account == ActivationAccount::transformers;
  if (!sharded && !modules) asked.zero = 0;
  std::vector<WorkingBytes>& alike = costs.working[working_class(asked, kind, sharded)];
  const auto key_of = [](const auto& batch) {
    return std::tuple(batch.tokens, batch.max_sequences, batch.sequences);
  };
  const auto place = std::lower_bound(
      alike.begin(), alike.end(), key_of(asked),
      [&](const WorkingBytes& bytes, const auto& wanted) { return key_of(bytes) < wanted; });
  if (place != alike.end() && key_of(*place) == key_of(asked)) return place->by_stage;
  WorkingBytes fresh{asked.tokens, asked.max_sequences, asked.sequences, {}};
  const TrainedBatches trained = batches(asked, kind);
  for (const StageClass& stage : *costs.layout.stages) {
    fresh.by_stage.emplace_back(
        working(costs.layout, asked, stage, stage.index, kind, trained).total());
  }
  return alike.insert(place, std::move(fresh))->by_stage;
}

}  // namespace tessera
