#include "planner/interop/import.h"

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine_check.h"
#include "planner/interop/config/command_words.h"
#include "planner/interop/import_format.h"
#include "planner/interop/read_config.h"

namespace tessera {

std::optional<Imported> import_config(std::string_view text, const std::string& file,
                                      const ImportOptions& options, Problems& problems) {
  const std::size_t before = problems.size();
  auto config = read_config_values(text, file, problems);
  if (!config) return std::nullopt;
  for (const std::string& setting : options.settings) {
    ConfigValues own{.file = "--set"};
    read_override({.text = setting}, own, problems);
    for (auto& [key, value] : own.values) {
      value.place = "--set";
      config->values[key] = std::move(value);
    }
  }
  if (problems.size() != before + config->refused) return std::nullopt;
  auto imported = format_of(config->syntax).import(*config, options, problems);
  if (!imported || config->refused > 0) return std::nullopt;
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
