// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/kept/open_work.h"

#include <QString>
#include <QSysInfo>
#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "simulator/timeline/rank_status.h"

#include <unistd.h>

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

// Homes may be on several hosts, whose processes have numbers of their own.
std::string beginning(const fs::path& memory) {
  return memory.stem().string() + ".open." + QSysInfo::machineHostName().toStdString() + ".";
}

// 0: it is the file of no process.
int process_of(const fs::path& file, const fs::path& memory) {
  const QString name = QString::fromStdString(file.filename().string());
  const QString before = QString::fromStdString(beginning(memory));
  if (!name.startsWith(before) || !name.endsWith(".json")) return 0;
  return name.mid(before.size()).chopped(5).toInt();
}

}  // namespace

fs::path open_work_file(const fs::path& memory) {
  return memory.parent_path() / (beginning(memory) + std::to_string(getpid()) + ".json");
}

void keep_open_work(const Project& work, const fs::path& file) {
  std::error_code ignored;
  if (work == Project{}) {
    fs::remove(file, ignored);
    return;
  }
  fs::create_directories(file.parent_path(), ignored);  // the writing says it
  write_project(work, file);
}

std::vector<fs::path> left_work(const fs::path& memory) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(memory.parent_path(), error)) {
    const int process = process_of(entry.path(), memory);
    if (process > 0 && !is_alive(process)) {
      found.emplace_back(entry.last_write_time(error), entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (auto& [time, file] : found) files.push_back(std::move(file));
  return files;
}

}  // namespace tessera::gui
