// Readers of what run.yaml says of the actor's routers of experts: their losses, and whose choice
// they replay. Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

void read_routers(ObjectReader& actor, const Plan& plan, ActorConfig& config);

/// What the sections say together: a choice to replay that nobody makes, or nobody notes.
void check_router_replay(ObjectReader& root, const RunConfig& config);

}  // namespace tessera
