// Where an engine finds the weights of a plan's model.
//
// Reads the model's folder; free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "planner/plan/model_source.h"

namespace tessera {

/// The Hugging Face repository of a preset's weights ("Qwen/Qwen2.5-7B"); empty = none.
std::string_view hub_name_of_preset(std::string_view preset);

/// A folder with safetensors as an absolute path; else the repository that config.json names
/// (_name_or_path) or that the preset has. A name that is no file here is what it was: a hub name
/// or a folder of another machine. Empty: a config.json says nothing of its weights.
std::string weights_of(const ModelSource& model);

}  // namespace tessera
