// Calibrations, rules, lines of metrics.jsonl and sweeps, by the first byte.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cost_models/calibration.h"
#include "cost_models/documents/check.h"
#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "planner/sweep/sweep_row.h"
#include "simulator/rules/rules.h"
#include "simulator/timeline/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  if (size == 0) return 0;
  Problems problems;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool made = false;
  switch (data[0] % 4) {
    case 0:
      made = parse_calibration(text, "calibration.json", problems).has_value();
      break;
    case 1:
      made = parse_rules(text, "rules.json", problems).has_value();
      break;
    case 2:
      made = parse_metrics_line(text, "metrics.jsonl", 1, problems).has_value();
      break;
    default:
      const auto table = parse_csv(text, "sweep.csv", problems);
      made = table && read_sweep_rows(*table, problems).has_value();
  }
  TESSERA_CHECK(made == problems.empty());
  return 0;
}
