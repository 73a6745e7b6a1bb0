#include "planner/sweep/sweep_inputs.h"

#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"

namespace tessera {
namespace {

// A path below the CSV's folder where it exists, else the name itself (a preset, or a path from
// here).
std::filesystem::path resolved(const std::filesystem::path& folder, const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path beside = folder / name;
  return std::filesystem::exists(beside, ignored) ? beside : std::filesystem::path(name);
}

// Problems that a file named by a row has are told at that row as well.
void add_place(Problems& problems, std::size_t before, const std::string& file, std::size_t line,
               const char* column) {
  if (problems.size() == before) return;
  Problem& first = problems[before];
  first.hint += (first.hint.empty() ? "" : "; ") + std::string("named by ") + file + ":" +
                std::to_string(line) + " (" + column + ")";
}

}  // namespace

std::optional<SweepInputs> read_sweep_inputs(std::span<const SweepRow> rows,
                                             const std::filesystem::path& folder,
                                             const std::string& file,
                                             const std::string& calibration, Problems& problems) {
  const std::size_t start = problems.size();
  SweepInputs inputs;
  for (const SweepRow& row : rows) {
    const std::size_t before = problems.size();
    if (row.model.empty() || row.cluster.empty()) continue;  // told already
    if (auto [entry, added] = inputs.models.try_emplace(row.model); added) {
      const auto where = resolved(folder, row.model);
      if (auto spec = read_model_spec(where, problems)) {
        entry->second = {*std::move(spec), where.string(), ""};
      }
      add_place(problems, before, file, row.line, "model");
    }
    const std::size_t between = problems.size();
    if (auto [entry, added] = inputs.clusters.try_emplace(row.cluster); added) {
      if (auto spec = read_cluster_spec(resolved(folder, row.cluster), problems)) {
        entry->second.spec = *std::move(spec);
        auto constants = calibration.empty() ? calibration_for_cluster(entry->second.spec, problems)
                                             : find_calibration(calibration, problems);
        if (constants) entry->second.calibration = *std::move(constants);
      }
      add_place(problems, between, file, row.line, "cluster");
    }
  }
  if (problems.size() != start) return std::nullopt;
  return inputs;
}

}  // namespace tessera
