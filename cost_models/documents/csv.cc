#include "cost_models/documents/csv.h"

#include <algorithm>
#include <unordered_set>

#include "cost_models/documents/document.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::size_t kMostColumns = 1024;
constexpr std::size_t kMostCells = std::size_t{1} << 21;  // 64 MiB of commas would take 2 GB
constexpr std::size_t kMostProblems = 100;  // a file of another format breaks every line

// State of one call of parse_csv.
class Parser {
 public:
  Parser(std::string_view text, const std::string& file, bool keeps_uneven, Problems& problems)
      : text_(text),
        problems_(problems),
        first_problem_(problems.size()),
        keeps_uneven_(keeps_uneven) {
    table_.file = file;
  }

  std::optional<CsvTable> run() {
    while (at_ < text_.size() && problems_.size() - first_problem_ < kMostProblems) {
      CsvRow row{.line = line_, .cells = {}};
      const bool empty = text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
      read_row(row);
      if (empty) continue;
      cells_ += row.cells.size();
      if (row.cells.size() > kMostColumns) {
        refuse(row.line, 1, "more than " + std::to_string(kMostColumns) + " cells in a row",
               "at most " + std::to_string(kMostColumns) + " columns");
        return std::nullopt;
      }
      if (cells_ > kMostCells) {
        refuse(row.line, 1, "more than " + std::to_string(kMostCells) + " cells",
               "a table of at most " + std::to_string(kMostCells) + " cells");
        return std::nullopt;
      }
      accept(std::move(row));
    }
    if (table_.header.empty() && problems_.size() == first_problem_) {
      refuse(1, 1, "an empty file", "a header row with the names of the columns");
    }
    if (problems_.size() != first_problem_ + uneven_) return std::nullopt;
    return std::move(table_);
  }

 private:
  void refuse(std::size_t line, std::size_t column, std::string found, std::string expected) {
    problems_.push_back({table_.file, std::to_string(line) + ":" + std::to_string(column),
                         std::move(found), std::move(expected), ""});
  }

  bool at_line_end() const {
    return at_ >= text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
  }

  void read_row(CsvRow& row) {
    for (;;) {
      row.cells.push_back(read_cell());
      if (row.cells.size() > kMostColumns) return;  // refused as it is
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      break;
    }
    if (at_ < text_.size()) at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    line_start_ = at_;
  }

  std::string read_cell() {
    if (at_ < text_.size() && text_[at_] == '"') return read_quoted();
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != ',') {
      if (text_[at_] == '"' || text_[at_] == '\r') {
        refuse(line_, at_ - line_start_ + 1,
               text_[at_] == '"' ? "a quote inside a bare cell" : "a bare carriage return",
               "a cell in quotes, with its quotes doubled");
        skip_line();
        break;
      }
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string read_quoted() {
    const std::size_t line = line_, column = at_ - line_start_ + 1;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        if (text_[at_] == '\n') {
          ++line_;
          line_start_ = at_ + 1;
        }
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += text_[++at_];
      } else {
        ++at_;
        if (!at_line_end() && text_[at_] != ',') {
          refuse(line_, at_ - line_start_ + 1, "text after a closing quote", "a comma or line end");
          skip_line();
        }
        return cell;
      }
    }
    refuse(line, column, "a quote that is never closed", "a closing quote");
    return cell;
  }

  void skip_line() {
    while (!at_line_end()) ++at_;
  }

  void accept(CsvRow row) {
    if (table_.header.empty()) return accept_header(std::move(row));
    if (row.cells.size() != table_.header.size()) {
      refuse(row.line, 1, std::to_string(row.cells.size()) + " cells",
             std::to_string(table_.header.size()) + ", as the header has names");
      if (!keeps_uneven_) return;
      ++uneven_;
      row.cells.resize(table_.header.size());
    }
    table_.rows.push_back(std::move(row));
  }

  void accept_header(CsvRow row) {
    std::unordered_set<std::string_view> seen;
    for (auto name = row.cells.begin(); name != row.cells.end(); ++name) {
      const std::string place = "column " + std::to_string(name - row.cells.begin() + 1);
      if (name->empty()) {
        refuse(row.line, 1, place + " without a name", "a name for every column");
      } else if (!seen.insert(*name).second) {
        refuse(row.line, 1, place + " named '" + *name + "' again", "names that differ");
      }
    }
    table_.header = std::move(row.cells);
  }

  std::string_view text_;
  Problems& problems_;
  std::size_t first_problem_;
  bool keeps_uneven_;
  std::size_t cells_ = 0;   // of all rows
  std::size_t uneven_ = 0;  // rows of another width that were kept
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
  CsvTable table_;
};

void append_cell(std::string& out, const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    out += cell;
    return;
  }
  out += '"';
  for (const char c : cell) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

// Cells are printed again as they are.
bool check_controls(std::string_view text, const std::string& file, Problems& problems) {
  std::size_t at = find_control_character(text);
  while (at != text.npos && text[at] == '\r') at = find_control_character(text, at + 1);
  if (at == text.npos) return true;
  problems.push_back({file, line_column(text, at), "a control character", "text", {}});
  return false;
}

std::optional<CsvTable> parse(std::string_view text, const std::string& file, bool keeps_uneven,
                              Problems& problems) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write one
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t before = problems.size();
  check_text(text, file, {.bytes = kMostBytes}, problems);
  if (problems.size() != before || !check_controls(text, file, problems)) return std::nullopt;
  return Parser(text, file, keeps_uneven, problems).run();
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

std::optional<CsvTable> parse_csv(std::string_view text, const std::string& file,
                                  Problems& problems) {
  return parse(text, file, false, problems);
}

std::optional<CsvTable> parse_csv_as_far(std::string_view text, const std::string& file,
                                         Problems& problems) {
  return parse(text, file, true, problems);
}

std::optional<CsvTable> read_csv(const std::filesystem::path& file, Problems& problems) {
  const auto text = read_text_file(file, kMostBytes, problems);
  return text ? parse_csv(*text, file.string(), problems) : std::nullopt;
}

std::optional<CsvTable> read_csv_as_far(const std::filesystem::path& file, Problems& problems) {
  const auto text = read_text_file(file, kMostBytes, problems);
  return text ? parse_csv_as_far(*text, file.string(), problems) : std::nullopt;
}

void append_row(std::string& out, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += ',';
    append_cell(out, cells[i]);
  }
  if (cells.size() == 1 && cells[0].empty()) out += "\"\"";  // an empty line would be skipped
  out += '\n';
}

std::string to_csv(const CsvTable& table) {
  std::string out;
  append_row(out, table.header);
  for (const CsvRow& row : table.rows) append_row(out, row.cells);
  return out;
}

}  // namespace tessera
