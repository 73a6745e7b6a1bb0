// The actor's low-rank adapters in run.yaml: verl's keys of its model, and what they cannot be
// with.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

/// lora_rank, lora_alpha, target_modules and lora_adapter_path of the actor's model. A folder of
/// adapters says itself what they are; the file may repeat it.
void read_lora(ObjectReader& reader, const Plan& plan, ActorConfig& actor);

/// The same keys of the critic's model.
void refuse_lora(ObjectReader& reader);

/// Refuses what the rest of the file asks beside adapters.
void check_lora(ObjectReader& root, const Plan& plan, const RunConfig& config);

}  // namespace tessera
