#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "executor/bench/reshard_bench.h"

namespace tessera {
namespace {

using nlohmann::json;

double milliseconds(const json& seconds) { return seconds.get<double>() * 1e3; }

/// One way to move the bytes, beside the ceiling where there is one (GB/s).
std::string row_of(const std::string& name, const json& each, double ceiling) {
  char line[300];
  std::string text;
  std::snprintf(line, sizeof line, "  %-28s %10.3f ms %8.1f GB/s", name.c_str(),
                each["seconds"].get<double>() * 1e3, each["gb_per_s"].get<double>());
  text += line;
  if (ceiling > 0) {
    std::snprintf(line, sizeof line, "  %5.1f %% of the pull ceiling",
                  each["gb_per_s"].get<double>() / ceiling * 100);
    text += line;
  }
  if (each.contains("of_bound")) {
    std::snprintf(line, sizeof line, "  %5.1f %% of the bound",
                  each["of_bound"].get<double>() * 100);
    text += line;
  }
  if (each.contains("wrong_elements")) {
    text += each["wrong_elements"] == 0 ? "  exact" : "  WRONG: " + each["wrong_elements"].dump();
  }
  if (each.contains("extra_bytes")) {
    std::snprintf(line, sizeof line, "  +%.1f MiB", each["extra_bytes"].get<double>() / 1048576);
    text += line;
  }
  text += "\n";
  return text;
}

}  // namespace

std::string reshard_table(const json& result) {
  char line[300];
  std::string text;
  std::snprintf(line, sizeof line, "%s: %.3f GB received by the busiest rank (lower bound %.3f)\n",
                result["case"].get<std::string>().c_str(),
                result["received_bytes"].get<double>() * 1e-9,
                result["lower_bound_bytes"].get<double>() * 1e-9);
  text += line;
  if (result.contains("bound_s")) {
    std::snprintf(line, sizeof line, "  links allow %.3f ms: %.3f GB of %s\n",
                  milliseconds(result["bound_s"]), result["busiest_end_bytes"].get<double>() * 1e-9,
                  result["bound_by"].get<std::string>().c_str());
    text += line;
  }
  double ceiling = 0;
  if (result.contains("ceilings") && result["ceilings"].contains("pull_large")) {
    ceiling = result["ceilings"]["pull_large"]["gb_per_s"];
  }
  for (const auto& [name, each] : result["transports"].items()) text += row_of(name, each, ceiling);
  if (ceiling > 0) {
    for (const auto& [name, each] : result["ceilings"].items())
      text += row_of("(" + name + ")", each, 0);
  }
  std::snprintf(line, sizeof line, "  %-28s %10.3f ms, 0 bytes\n", "way back",
                result["way_back"]["seconds"].get<double>() * 1e3);
  text += line;
  if (result.contains("practice") && result["practice"].contains("overlap")) {
    const json& overlap = result["practice"]["overlap"];
    std::snprintf(line, sizeof line,
                  "  beside the optimizer (%.2f ms)  %10.3f ms, %.2f exposed; at best %.2f, %.2f "
                  "exposed (bound by the %s; memory traffic %.2f); in series %.2f\n",
                  milliseconds(overlap["optimizer_s"]), milliseconds(overlap["overlapped_s"]),
                  milliseconds(overlap["exposed_s"]), milliseconds(overlap["bound_s"]),
                  milliseconds(overlap["bound_exposed_s"]),
                  overlap["bound_by"].get<std::string>().c_str(), milliseconds(overlap["memory_s"]),
                  milliseconds(overlap["optimizer_then_switch_s"]));
    text += line;
  }
  if (result.contains("practice")) text += "  " + result["practice"].dump() + "\n";
  return text;
}

}  // namespace tessera
