#include "executor/records/run_log.h"

#include <cmath>
#include <cstdio>

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
    : metrics_(folder / "metrics.jsonl"), samples_(folder / "samples.jsonl"), events_(folder) {}

void RunLog::add_step(std::int64_t step, const std::map<std::string, double>& numbers) {
  std::string line = "{\"step\": " + std::to_string(step) + ", \"data\": {";
  bool first = true;
  for (const auto& [name, value] : numbers) {
    line += (first ? "\"" : ", \"") + name + "\": " + number(value);
    first = false;
  }
  metrics_.append(line + "}}\n");
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
