// Where an engine finds the weights of a plan's model.
//
// Reads the model's folder; free functions, any thread.
#pragma once

#include <string>

#include "planner/plan/model_source.h"

namespace tessera {

/// The Hugging Face repository of a preset's weights ("Qwen/Qwen2.5-7B"), as its config.json
/// (_name_or_path) or the table here names it; empty = it names none, or there is no such preset.
std::string hub_name_of_preset(const std::string& preset);

/// A folder with safetensors as an absolute path; else the repository that config.json names
/// (_name_or_path) or that the preset has. A name that is no file here is what it was: a hub name
/// or a folder of another machine. Empty: a config.json, a preset's or another, says nothing of its
/// weights.
std::string weights_of(const ModelSource& model);

/// True for weights that are stored in 8 bit or less: quantization_config in the config.json of the
/// folder or preset, or a repository that is known for it.
bool has_quantized_weights(const ModelSource& model);

/// What the model's config.json states and Tessera's own executor does not do: weights that are
/// stored in 8 bit, dropout in training. Empty: nothing, or there is no such file here.
std::string unlike_executor(const ModelSource& model);

}  // namespace tessera
