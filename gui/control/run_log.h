// SPDX-License-Identifier: GPL-3.0-or-later
// What a run printed: where it has no folder, the log that stands for it; else FOLDER.log beside
// its folder, where the window lets `tessera run` write, and where others may; else what Slurm
// wrote of its job.
//
// Slurm's files are slurm-JOB.out and, of exported jobs, NAME-JOB.log; they say nothing of the
// run's folder. Of those beside the folder and in it the one counts that was written last, if that
// was after the run began. What is printed is not every step; those are in FOLDER/log.txt.
//
// One thread at a time, any. Files of a stranger: the end alone is read, and only of a regular
// file.
#pragma once

#include <QString>
#include <chrono>
#include <cstdint>
#include <filesystem>

namespace tessera::gui {

/// The file of a run's folder.
QString logFile(const QString& folder);

/// The end of a file that grows.
class LogTail {
 public:
  /// Its last lines, at most 64 KiB of them, without what colours a terminal; empty where there is
  /// no such file. Reads again only once it is another file, or has another size.
  const QString& read(const std::filesystem::path& file);

 private:
  std::filesystem::path file_;
  std::uintmax_t size_ = 0;
  QString text_;
};

class RunLog {
 public:
  explicit RunLog(const std::filesystem::path& run);

  const QString& read();
  /// The file that was read last.
  const std::filesystem::path& file() const { return file_; }

 private:
  void choose();

  std::filesystem::path folder_, own_, file_;
  std::chrono::steady_clock::time_point chosen_at_;
  LogTail tail_;
};

/// The file that Slurm wrote of a run's job last; empty where there is none. `folder`: of the run.
std::filesystem::path slurm_log(const std::filesystem::path& folder);

/// The last `count` lines of a text.
QString lastLines(const QString& text, int count);

}  // namespace tessera::gui
