#include "planner/interop/import.h"

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine_check.h"
#include "planner/interop/config/command_words.h"
#include "planner/interop/import_format.h"
#include "planner/interop/read_config.h"

namespace tessera {

namespace {

// Options that say what a format's files have no use for.
void check_options(ConfigSyntax syntax, const ImportOptions& options, Problems& problems) {
  const auto refuse = [&](const char* option, bool given, const char* expected) {
    if (given) problems.push_back({option, "", "an option that is not read", expected, ""});
  };
  if (syntax == ConfigSyntax::megatron) {
    const char* const others = "none: Megatron-LM's sequences all have --seq-length tokens";
    refuse("--response-mean", options.response_mean.has_value(), others);
    refuse("--response-cv", options.response_cv.has_value(), others);
  }
  if (syntax != ConfigSyntax::verl) {
    refuse("--prompt-mean", options.prompt_mean.has_value(), "none but for verl's files");
    refuse("--image-tokens", options.image_tokens.has_value(), "none but for verl's files");
  }
}

}  // namespace

std::optional<Imported> import_config(std::string_view text, const std::string& file,
                                      const ImportOptions& options, Problems& problems) {
  auto config = read_config_values(text, file, problems);
  if (!config) return std::nullopt;
  return import_config(*std::move(config), options, problems);
}

std::optional<Imported> import_config(ConfigValues config, const ImportOptions& options,
                                      Problems& problems) {
  const std::size_t before = problems.size();
  for (const std::string& setting : options.settings) {
    ConfigValues own{.file = "--set"};
    read_override({.text = setting}, own, problems);
    for (auto& [key, value] : own.values) {
      value.place = "--set";
      config.values[key] = std::move(value);
    }
  }
  if (problems.size() != before) return std::nullopt;
  check_options(config.syntax, options, problems);
  if (problems.size() != before) return std::nullopt;
  auto imported = format_of(config.syntax).import(config, options, problems);
  if (!imported || config.refused > 0) return std::nullopt;
  imported->notes.insert(imported->notes.begin(), config.assumed.begin(), config.assumed.end());
  for (const Problem& problem : outside_capabilities(imported->plan)) {
    imported->notes.push_back("not for engine '" + imported->plan.engine + "': " +
                              to_string({.place = problem.place,
                                         .found = problem.found,
                                         .expected = problem.expected,
                                         .hint = problem.hint}) +
                              ".");
  }
  return imported;
}

}  // namespace tessera
