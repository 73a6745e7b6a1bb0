// Readers of what run.yaml says of validation, in verl's keys: the files below `data`, the times
// below `trainer`, the sampling below `actor_rollout_ref.rollout`. Problems go to the reader; pure
// otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

void read_validation_files(ObjectReader& data, ValidationConfig& validation);
void read_validation_times(ObjectReader& trainer, ValidationConfig& validation);
void read_validation_sampling(ObjectReader& rollout, ValidationConfig& validation);

/// What the sections say together: times without prompts, a metric that nothing makes.
void check_validation(ObjectReader& root, const RunConfig& config);

}  // namespace tessera
