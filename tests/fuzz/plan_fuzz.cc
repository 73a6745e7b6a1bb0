// plan.json: what reads must write and read again as the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  Problems problems;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = parse_plan(text, "plan", problems);
  TESSERA_CHECK(plan.has_value() == problems.empty());
  if (!plan) return 0;
  const std::string written = to_json(*plan);
  const auto again = parse_plan(written, "plan", problems);
  TESSERA_CHECK(again.has_value() && to_json(*again) == written);
  return 0;
}
