// Files that rank 0 writes while a run goes on: metrics.jsonl, TensorBoard events and
// samples.jsonl in the run's folder.
//
// One line per step, {"step": n, "data": {...}} as verl's file logger writes it, each line written
// whole or, where the disk refuses, left out. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "executor/records/event_file.h"
#include "executor/records/line_file.h"

namespace tessera {

class RunLog {
 public:
  /// Appends to the files of `folder`, which exists. Throws Error (io).
  explicit RunLog(const std::filesystem::path& folder);

  void add_step(std::int64_t step, const std::map<std::string, double>& numbers);
  /// Numbers of the step whose line is the last, which they join (and take the place of those of
  /// their names); without such a line as add_step. One line stands for a step.
  void add_to_step(std::int64_t step, const std::map<std::string, double>& numbers);
  /// A line that is JSON already, without its end.
  void add_sample(const std::string& line);
  /// Removes what was written of steps above `step`: they come again.
  void forget_after(std::int64_t step);
  /// The same, and keeps it in files named `rolled_back_*` beside them: the run has made these
  /// steps and takes them back.
  void keep_apart_after(std::int64_t step);

 private:
  LineFile metrics_, samples_;
  EventFile events_;
};

}  // namespace tessera
