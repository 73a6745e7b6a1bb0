// Responses that come from a record instead of from a model. No torch here.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/model_spec.h"
#include "executor/rl/experience.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

/// Takes the responses from a recorded step instead of generating them. A sample that is not in the
/// record, or whose recorded prompt has other tokens, is a Problem of `file`.
std::vector<Sequence> replay(const Experience& recorded, std::span<const TokenPrompt> prompts,
                             const std::string& file, Problems& problems);

/// Whether recorded sequences of a step say which experts of this model each token went to, but for
/// the last ones. One that does not is a Problem of `file`.
void check_experts(std::span<const Sequence> sequences, std::int64_t step, const ModelSpec& model,
                   const std::string& file, Problems& problems);

}  // namespace tessera
