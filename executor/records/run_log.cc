#include "executor/records/run_log.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

/// JSON has no NaN and no infinity: they become null.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string metrics_line(std::int64_t step, const std::map<std::string, double>& numbers) {
  std::string line = "{\"step\": " + std::to_string(step) + ", \"data\": {";
  bool first = true;
  for (const auto& [name, value] : numbers) {
    line += (first ? "\"" : ", \"") + name + "\": " + number(value);
    first = false;
  }
  return line + "}}\n";
}

/// Adds what a line says that metrics_line has made; null is a number that is none.
void add_numbers_of(std::string_view line, std::map<std::string, double>& numbers) {
  Problems ignored;
  const auto document = parse_json(line, "metrics.jsonl", ignored);
  const Node* const data =
      document && document->root.is(Node::Kind::map) ? document->root.find("data") : nullptr;
  if (data == nullptr || !data->is(Node::Kind::map)) return;
  for (std::size_t i = 0; i < data->keys.size(); ++i) {
    const Node& value = data->items[i];
    const bool is_number = value.is(Node::Kind::integer) || value.is(Node::Kind::number);
    numbers[data->keys[i]] = is_number ? value.number : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& folder)
    : metrics_(folder / "metrics.jsonl"), samples_(folder / "samples.jsonl"), events_(folder) {}

void RunLog::add_step(std::int64_t step, const std::map<std::string, double>& numbers) {
  metrics_.append(metrics_line(step, numbers));
  events_.add_step(step, numbers);
}

void RunLog::add_to_step(std::int64_t step, const std::map<std::string, double>& numbers) {
  const std::string known = metrics_.lines_after(step - 1);
  std::map<std::string, double> all;
  std::string_view rest = known;
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
    add_numbers_of(rest.substr(0, end), all);
  }
  for (const auto& [name, value] : numbers) all[name] = value;
  if (known.empty() || !metrics_.replace_after(step - 1, metrics_line(step, all))) {
    metrics_.append(metrics_line(step, numbers));
  }
  events_.add_step(step, numbers);
}

void RunLog::add_sample(const std::string& line) { samples_.append(line + "\n"); }

void RunLog::forget_after(std::int64_t step) {
  metrics_.forget_after(step);
  samples_.forget_after(step);
}

void RunLog::keep_apart_after(std::int64_t step) {
  for (LineFile* file : {&metrics_, &samples_}) {
    const std::filesystem::path& path = file->path();
    file->keep_apart_after(step, path.parent_path() / ("rolled_back_" + path.filename().string()));
  }
}

}  // namespace tessera
