#include "cli/processes/earlier_documents.h"

#include <optional>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/documents/yaml_overrides.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// As it would be told to go on; nullopt where it is no run file.
std::optional<std::string> going_on(const std::string& config) {
  try {
    return with_overrides(config, {kResumeWord}, "run.yaml");
  } catch (const Error&) {
    return std::nullopt;
  }
}

void throw_if(const std::error_code& error, const fs::path& file) {
  if (error) {
    throw Error(ExitCode::io, {Problem{.file = file.string(), .found = error.message()}});
  }
}

}  // namespace

fs::path next_numbered(const fs::path& folder, const std::string& stem,
                       const std::string& extension) {
  std::error_code error;
  for (int number = 1;; ++number) {
    fs::path file = folder / (stem + "-" + std::to_string(number) + extension);
    if (!fs::exists(file, error)) return file;
  }
}

std::vector<EarlierDocument> keep_earlier(const fs::path& run, const std::string& plan,
                                          const std::string& config) {
  Problems none;
  std::vector<EarlierDocument> kept;
  const auto keep = [&](const std::string& stem, const std::string& extension) {
    const EarlierDocument& document = kept.emplace_back(
        EarlierDocument{run / (stem + extension), next_numbered(run, stem, extension)});
    std::error_code error;
    fs::copy_file(document.file, document.copy, error);
    throw_if(error, document.copy);
  };
  const auto old_plan = read_text_file(run / "plan.json", ParseLimits{}.bytes, none);
  if (old_plan && *old_plan != plan) keep("plan", ".json");
  const auto old_config = read_text_file(run / "run.yaml", kMostYaml, none);
  if (old_config && *old_config != config && going_on(*old_config) != going_on(config)) {
    keep("run", ".yaml");
  }
  return kept;
}

void put_back(std::span<const EarlierDocument> documents) {
  for (const EarlierDocument& document : documents) {
    std::error_code error;
    fs::rename(document.copy, document.file, error);
    throw_if(error, document.file);
  }
}

}  // namespace tessera
