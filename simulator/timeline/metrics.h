// metrics.jsonl: what a run measured, one line `{"step": n, "data": {name: number}}` per step.
//
// The executor writes it, `tessera compare` and the window read it, the window while it grows. Null
// values (numbers that were not finite) are left out. A resumed run may repeat steps: lines stay in
// the file's order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "simulator/timeline/comparison.h"
#include "simulator/timeline/metric_scan.h"

namespace tessera {

/// One line without its newline; `number` counts from 1 and stands in the problems' places. nullopt
/// when anything was appended: times (timing_s/...) below 0 or above 1e7 s, and a phase of more
/// than ten times its step, are no measure of a run.
std::optional<StepNumbers> parse_metrics_line(std::string_view line, const std::string& file,
                                              std::int64_t number, Problems& problems);

/// Of a run's folder, or of one that is not there so far, its metrics.jsonl; a file is its own.
std::filesystem::path metrics_file(const std::filesystem::path& run);

/// Whether read_metrics() would find a step of a run; reads up to that, 64 MiB at most.
bool has_step(const std::filesystem::path& file);

/// All lines; a last one that is still being written is left out. A console log (MetricsTail) must
/// have a step. `wanted` chooses the numbers that are kept, which a long run has a hundred of in
/// each step; all where it is empty. nullopt when anything was appended.
std::optional<std::vector<StepNumbers>> read_metrics(
    const std::filesystem::path& file, Problems& problems,
    const std::function<bool(std::string_view)>& wanted = {});

/// Reads what was added to a growing file. One whose first line is no JSON is a console log of verl
/// (console_log.h), of which lines that are no step are passed over; with a name that ends in
/// .jsonl it must have a step when it is read first. One thread.
class MetricsTail {
 public:
  explicit MetricsTail(std::filesystem::path file);

  /// Steps of the lines that were completed since the last call; none while the file does not
  /// exist. A malformed line is appended to `problems` and passed over; once what is no file, too.
  std::vector<StepNumbers> read_new(Problems& problems);
  /// The same steps, each as its line has it: in a fraction of the time where lines are plain.
  using Take = std::function<void(const MetricLine&)>;
  void read_new(const Take& take, Problems& problems);

  /// True when the last read_new() began again at the start: it found a shorter file than before,
  /// another one of the name, or a file where there was something else.
  bool restarted() const { return restarted_; }
  /// The line that was still being written at the last call.
  const std::string& half_line() const { return half_line_; }
  /// The step of that line, where it is whole without its end.
  std::optional<StepNumbers> half_step() const;
  bool is_console() const { return console_.value_or(false); }

 private:
  bool read_line(std::string_view line, Problems& problems);

  std::filesystem::path file_;
  std::int64_t offset_ = 0, lines_ = 0;
  std::uint64_t inode_ = 0;  // of the file that was read
  std::string half_line_;
  bool restarted_ = false, told_ = false;
  std::optional<bool> console_;  // of the file that is read; nullopt: it has no line so far
  MetricScanner scanner_;
};

}  // namespace tessera
