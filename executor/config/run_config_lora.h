// The actor's low-rank adapters in run.yaml: verl's keys of its model, and what they cannot be
// with.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

/// lora_rank, lora_alpha, target_modules and lora_adapter_path of the actor's model, whose adapters
/// are the plan's before. A folder of adapters says itself what they are, and so does a plan that
/// counts some; the file may repeat it, and choose another scale than the plan's.
void read_lora(ObjectReader& reader, const Plan& plan, ActorConfig& actor);

/// The same keys of the critic's model.
void refuse_lora(ObjectReader& reader);

/// What a run is told that trains adapters with a plan that counts none; else empty.
std::string adapter_note(const Plan& plan, const Lora& lora);

/// Refuses what the rest of the file asks beside adapters.
void check_lora(ObjectReader& root, const Plan& plan, const RunConfig& config);

}  // namespace tessera
