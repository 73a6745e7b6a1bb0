// tessera sweep: a prediction for every row of a CSV of fixed layouts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "planner/sweep/search/row_search.h"
#include "planner/sweep/sweep.h"

namespace tessera {
namespace {

struct SweepOptions {
  std::string input, output, calibration;
  double risk = kDefaultRisk;
  bool json = false;
};

// Numbers as numbers, an empty cell as null, the rest as text.
Node cell_node(const std::string& cell) {
  if (cell.empty()) return {};
  double number = 0;
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, number);
  if (error != std::errc{} || stop != end || !std::isfinite(number)) {
    return node_of(std::string_view(cell));
  }
  return node_of(number);
}

std::string to_json(const CsvTable& table, const SweepSummary& summary) {
  Node root = map_node(), rows = list_node();
  for (const CsvRow& row : table.rows) {
    Node each = map_node();
    for (std::size_t i = 0; i < table.header.size(); ++i) {
      add(each, table.header[i], cell_node(row.cells[i]));
    }
    rows.items.push_back(std::move(each));
  }
  add(root, "rows", std::move(rows));
  add(root, "feasible", node_of(static_cast<std::int64_t>(summary.feasible)));
  return json_text(root);
}

// Named once, so that a column which was meant to be read is noticed.
void name_kept_columns(const std::vector<std::string>& kept) {
  constexpr std::size_t kMostNamed = 20;
  if (kept.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(kept.size(), kMostNamed); ++i) {
    names += (i == 0 ? "" : ", ") + printable(kept[i].substr(0, 100));
  }
  if (kept.size() > kMostNamed) {
    names += " and " + std::to_string(kept.size() - kMostNamed) + " more";
  }
  std::fprintf(stderr, "sweep: columns kept and not read: %s\n", names.c_str());
}

void run_sweep(const SweepOptions& options) {
  Problems problems;
  std::optional<CsvTable> table = read_csv_as_far(options.input, problems);
  std::optional<SweepSummary> summary;
  if (table) {
    summary = sweep(*table, std::filesystem::path(options.input).parent_path(), options.calibration,
                    search_row, problems, options.risk);
  }
  if (!summary || !problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const bool to_file = !options.output.empty() && options.output != "-";
  if (to_file) write_text_file(options.output, to_csv(*table));
  if (options.json) {
    std::printf("%s", to_json(*table, *summary).c_str());
  } else if (!to_file) {
    std::printf("%s", to_csv(*table).c_str());
  }
  name_kept_columns(summary->kept);
  std::fprintf(stderr, "sweep: %zu rows, %zu of them feasible\n", summary->rows, summary->feasible);
}

}  // namespace

void add_sweep(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sweep", "Predict every row of a CSV of fixed layouts");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("input", options->input, "CSV: one row = one fixed layout and workload")
      ->required();
  command->add_option("-o,--output", options->output, "Where to write; default: stdout");
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset for every row; default: the device's");
  add_risk(*command, options->risk);
  command->add_flag("--json", options->json, "Print the rows as JSON");
  command->callback([options] { run_sweep(*options); });
}

}  // namespace tessera
