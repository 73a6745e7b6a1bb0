// Where a plan's model comes from: its folder and the digest of its config.json.
//
// The digest (SHA-256, lower-case hexadecimal) ties a plan to the model it was made for; a run
// refuses a folder whose config.json has changed since. Free functions; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/model_spec.h"

namespace tessera {

struct Plan;

struct ModelSource {
  ModelSpec spec;
  std::string path;           // as the user gave it
  std::string config_sha256;  // of config.json
  bool operator==(const ModelSource&) const = default;
};

/// SHA-256 of a file's bytes; nullopt when it cannot be read.
std::optional<std::string> sha256_of(const std::filesystem::path& file);

/// A folder, a config.json or a preset's name as a plan's model; nullopt when problems were
/// appended.
std::optional<ModelSource> read_model_source(const std::string& where, Problems& problems);

/// Appends a problem for every model whose config.json differs from the one that the plan was made
/// for. A model without digest or whose folder is elsewhere here is not judged.
void check_model_sources(const Plan& plan, const std::string& plan_file, Problems& problems);

}  // namespace tessera
