// Bytes of a rank in each phase of a candidate.
//
// Pure. A rank holds what is resident, as far as it is on the device in that phase, and what the
// call that runs needs besides.
#pragma once

#include <optional>

#include "planner/pricing/role/role_layout.h"

namespace tessera {

/// Micro-batches of a call that trains; others do not ask.
struct TrainedBatches {
  double count = 1;  // of one replica in a mini-batch
  std::optional<double>
      in_flight;  // on the stage at once; nullopt = as many as its pipeline brings
};

/// What a stage's rank holds between calls where nothing is offloaded. A reference that is the
/// actor without its adapters holds nothing.
MemoryUse resident(const RoleLayout& layout, const Candidate& candidate, const StageClass& stage);
/// Of that, the weights that adapters stand beside.
MemoryUse frozen_weights(const RoleLayout& layout, const Candidate& candidate,
                         const StageClass& stage);

/// What of it is on the device in a phase of a call, or in one without.
MemoryUse on_device(const RoleLayout& layout, MemoryUse use, const Candidate& candidate,
                    Phase phase, std::optional<CallKind> call);

/// What the role keeps of it without having it on the device in a phase: in host memory, or
/// unmapped. Gradients that are not there are none.
MemoryUse asleep(const RoleLayout& layout, const Candidate& candidate, const StageClass& stage,
                 Phase phase);

/// The call whose needs are in memory in a phase of `call`, or of none: a server that never sleeps,
/// of a rollout or a reward model, keeps those of its own.
std::optional<CallKind> in_memory(const EngineTraits& traits, std::optional<CallKind> call,
                                  const Candidate& candidate);

/// Tokens that the KV cache of a rollout's replica has room for, by sequence that it decodes at
/// once.
double cached_tokens(const Assumptions& assumed, const Candidate& candidate);
/// Of all that it decodes at once, where its cache is paged; else 0.
double paged_tokens(const Assumptions& assumed, const Candidate& candidate);

/// What a call needs besides on a stage; `index` tells stages of one class apart.
MemoryUse working(const RoleLayout& layout, const Candidate& candidate, const StageClass& stage,
                  int index, CallKind kind, const TrainedBatches& batches);

/// Both together in a phase.
MemoryUse stage_memory(const RoleLayout& layout, const Candidate& candidate,
                       const StageClass& stage, int index, Phase phase,
                       const TrainedBatches& batches);

/// Sequences of one replica in a mini-batch.
double mini_batch_sequences(const Workload& workload, const Candidate& candidate);

}  // namespace tessera
