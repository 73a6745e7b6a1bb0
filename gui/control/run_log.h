// SPDX-License-Identifier: GPL-3.0-or-later
// What a run printed: FOLDER.log beside its folder, where the window lets `tessera run` write, and
// where others may.
//
// One thread at a time, any. Files of a stranger: the end alone is read, and only of a regular
// file.
#pragma once

#include <QString>
#include <cstdint>
#include <filesystem>

namespace tessera::gui {

/// The file of a run's folder.
QString logFile(const QString& folder);

class RunLog {
 public:
  explicit RunLog(const std::filesystem::path& run);

  /// Its last lines, at most 64 KiB of them, without what colours a terminal; empty where there is
  /// no such file. Reads again only once the file has another size.
  const QString& read();

 private:
  std::filesystem::path file_;
  std::uintmax_t size_ = 0;
  QString text_;
};

/// The last `count` lines of a text.
QString lastLines(const QString& text, int count);

}  // namespace tessera::gui
