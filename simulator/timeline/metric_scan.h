// Lines of metrics.jsonl read without a tree: those that runs write are plain and have the same
// names again and again.
//
// A line is plain that is {"step": N, "data": {NAME: NUMBER or null, ...}} in this order, with
// names of printable ASCII without escapes, each once. parse_metrics_line would give the same step;
// what is not plain is left to it. Keeps the names of the line before; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct StepNumbers;

/// A step as its line has it; valid until the next line is read.
struct MetricLine {
  std::int64_t step = 0;
  std::span<const std::string> names;  // in the line's order, each once
  std::span<const double> values;      // by name; NaN = null
  std::int64_t layout = 0;             // lines of one reader with equal ones have equal names
};

class MetricScanner {
 public:
  /// False where the line is not plain; line() is undefined then.
  bool scan(std::string_view line);
  /// The line is a step that somebody else has read.
  void set(const StepNumbers& step);
  MetricLine line() const { return {step_, names_, values_, layout_}; }

 private:
  bool take_names();

  std::int64_t step_ = 0, layout_ = 0;
  std::vector<std::string> names_;
  std::vector<double> values_;
  std::vector<std::string_view> found_;  // names of the line that is read
};

}  // namespace tessera
