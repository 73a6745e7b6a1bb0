// Names in a run's folder that its ranks and the command line both know.
#pragma once

#include <string_view>

namespace tessera {

/// Folders of what the steps leave: checkpoints, and actors as Hugging Face folders.
inline constexpr std::string_view kCheckpointsFolder = "checkpoints", kExportsFolder = "hf_steps";

/// What a step leaves in either is named by this and its number, once it is complete.
inline constexpr std::string_view kStepPrefix = "global_step_";

}  // namespace tessera
