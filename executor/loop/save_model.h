// The trained actor as a Hugging Face folder, its adapters as a folder of peft's.
#pragma once

#include <filesystem>

#include "executor/checkpoint/training_origin.h"
#include "executor/loop/worker.h"

namespace tessera {

struct Plan;

/// Gathers the actor's weights tensor by tensor and writes `folder` on the role's leader, in place
/// of one that exists once the new one is complete; config and tokenizer come from the model that
/// the run started from, and `origin` says what it was trained with. Where adapters are trained the
/// folder has those alone and names that model. Collective over the actor's ranks. Throws Error
/// (io).
void save_actor(Worker& worker, const Plan& plan, const RunConfig& config,
                const TrainingOrigin& origin, const std::filesystem::path& folder);

}  // namespace tessera
