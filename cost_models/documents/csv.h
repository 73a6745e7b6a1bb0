// Strict CSV (RFC 4180) with a header row: what `tessera sweep` reads and writes.
//
// Cells are text; a row remembers the line it starts on, counted from 1. Quoted cells may hold
// commas, doubled quotes and line ends; lines end with LF or CRLF. Plain values.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct CsvRow {
  std::size_t line = 0;
  std::vector<std::string> cells;  // as many as the header has names
};

struct CsvTable {
  std::string file;  // as messages name it
  std::vector<std::string> header;
  std::vector<CsvRow> rows;

  /// Position of a column, or nullopt.
  std::optional<std::size_t> column(std::string_view name) const;
};

/// nullopt and Problems (line:column of the cell) when the text is no CSV: quotes that are not
/// closed or stand inside a bare cell, rows of another width than the header, names that are empty
/// or occur twice, control characters, more than 64 MiB, 1,024 columns or 2,097,152 cells. Empty
/// lines are skipped.
std::optional<CsvTable> parse_csv(std::string_view text, const std::string& file,
                                  Problems& problems);

/// Parses as parse_csv does, but a row of another width is a Problem and stays, cut or filled with
/// empty cells, so that what else is wrong with the table can be told as well. Callers look at
/// `problems`.
std::optional<CsvTable> parse_csv_as_far(std::string_view text, const std::string& file,
                                         Problems& problems);
std::optional<CsvTable> read_csv(const std::filesystem::path& file, Problems& problems);
std::optional<CsvTable> read_csv_as_far(const std::filesystem::path& file, Problems& problems);

/// A row as text, as to_csv has it; for those whose rows are too many for a table.
void append_row(std::string& out, const std::vector<std::string>& cells);

/// The table as text, cells quoted where they must be, lines ending with '\n'.
std::string to_csv(const CsvTable& table);

}  // namespace tessera
