// Configurations of other tools: YAML, overrides and shell scripts, by the first byte.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  if (size == 0) return 0;
  static constexpr std::array<const char*, 3> kNames{"a.yaml", "a.txt", "a.sh"};
  static const ImportOptions options = [] {
    Problems none;
    ImportOptions made{.cluster = *read_cluster_spec("h800-64", none)};
    made.model = "qwen2.5-7b";
    return made;
  }();
  Problems problems;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto imported = import_config(text, kNames[data[0] % kNames.size()], options, problems);
  TESSERA_CHECK(imported.has_value() == problems.empty());
  if (imported) {
    validate(imported->plan, "plan", problems);
    TESSERA_CHECK(problems.empty());
  }
  return 0;
}
