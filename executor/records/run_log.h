// Files that rank 0 writes while a run goes on: metrics.jsonl, TensorBoard events and
// samples.jsonl in the run's folder.
//
// One line per step, {"step": n, "data": {...}} as verl's file logger writes it, each line written
// whole and flushed. One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "executor/records/event_file.h"

namespace tessera {

class RunLog {
 public:
  /// Appends to the files of `folder`, which exists. Throws Error (io).
  explicit RunLog(const std::filesystem::path& folder);

  void add_step(std::int64_t step, const std::map<std::string, double>& numbers);
  /// A line that is JSON already, without its end.
  void add_sample(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  static File open(const std::filesystem::path& file);
  static void write_line(const File& file, const std::string& line);

  File metrics_, samples_;
  EventFile events_;
};

}  // namespace tessera
