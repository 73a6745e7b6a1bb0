#include "planner/advice/inherited_keys.h"

#include <string>
#include <string_view>

#include "planner/interop/verl/verl_engines.h"

namespace tessera {
namespace {

struct Default {
  std::string_view key, value;  // as verl's YAML has it
  int engines;                  // VerlEngineKeys::bit
};

// From the _generated_*.yaml of verl 0.9.1 by scripts/make_verl_keys.py --inherited.
constexpr Default kDefaults[] = {
#include "planner/advice/inherited_keys.inc"
};

}  // namespace

ConfigValues with_inherited_defaults(ConfigValues config) {
  if (config.syntax != ConfigSyntax::verl) return config;
  const int engine = keys_of(config.engine).bit;
  for (const Default& row : kDefaults) {
    if ((row.engines & engine) == 0) continue;
    config.values.try_emplace(std::string(row.key),
                              ConfigValue{.value = override_value(row.value)});
  }
  return config;
}

}  // namespace tessera
