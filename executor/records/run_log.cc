#include "executor/records/run_log.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// JSON has no NaN and no infinity: they become null.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& folder)
    : metrics_(open(folder / "metrics.jsonl")),
      samples_(open(folder / "samples.jsonl")),
      events_(folder) {}

RunLog::File RunLog::open(const std::filesystem::path& file) {
  File opened(std::fopen(file.c_str(), "ae"));
  if (!opened) throw Error(ExitCode::io, file.string() + ": " + std::strerror(errno));
  return opened;
}

void RunLog::write_line(const File& file, const std::string& line) {
  const std::string whole = line + "\n";
  if (std::fwrite(whole.data(), 1, whole.size(), file.get()) != whole.size() ||
      std::fflush(file.get()) != 0) {
    throw Error(ExitCode::io, std::string("cannot write the run's log: ") + std::strerror(errno));
  }
}

void RunLog::add_step(std::int64_t step, const std::map<std::string, double>& numbers) {
  std::string line = "{\"step\": " + std::to_string(step) + ", \"data\": {";
  bool first = true;
  for (const auto& [name, value] : numbers) {
    line += (first ? "\"" : ", \"") + name + "\": " + number(value);
    first = false;
  }
  write_line(metrics_, line + "}}");
  events_.add_step(step, numbers);
}

void RunLog::add_sample(const std::string& line) { write_line(samples_, line); }

}  // namespace tessera
