// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/control/run_log.h"

#include <QFile>
#include <QRegularExpression>
#include <algorithm>
#include <system_error>
#include <utility>

namespace tessera::gui {
namespace {

constexpr std::uintmax_t kMostBytes = 64 << 10;
constexpr int kMostEntries = 20'000;  // of a folder that are looked through
constexpr std::chrono::seconds kLookAgain{5};
constexpr std::chrono::minutes kBefore{
    10};  // a run's first file that a job may print its last line

using FileTime = std::filesystem::file_time_type;

template <class Take>
void for_files(const std::filesystem::path& folder, const Take& take) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (int seen = 0; !error && at != std::filesystem::directory_iterator() && seen < kMostEntries;
       at.increment(error), ++seen) {
    std::error_code unread;
    if (!at->is_regular_file(unread) || unread) continue;
    const FileTime written = at->last_write_time(unread);
    if (!unread) take(at->path(), written);
  }
}

bool is_slurms(const std::string& name) {
  static const QRegularExpression names(
      QRegularExpression::anchoredPattern("slurm-\\d+(_\\d+)?\\.out|.+-\\d+\\.log"));
  return names.match(QString::fromStdString(name)).hasMatch();
}

}  // namespace

std::filesystem::path slurm_log(const std::filesystem::path& folder) {
  FileTime begun = FileTime::max(), last = FileTime::min();
  for_files(folder, [&](const std::filesystem::path& file, FileTime written) {
    if (!is_slurms(file.filename().string())) begun = std::min(begun, written);
  });
  std::filesystem::path found;
  const std::filesystem::path beside =
      folder.has_parent_path() ? folder.parent_path() : std::filesystem::path(".");
  for (const std::filesystem::path& where : {beside, folder}) {
    for_files(where, [&](const std::filesystem::path& file, FileTime written) {
      if (written < begun - kBefore || written < last || !is_slurms(file.filename().string()))
        return;
      last = written;
      found = file;
    });
  }
  return found;
}

QString logFile(const QString& folder) { return folder + ".log"; }

RunLog::RunLog(const std::filesystem::path& run) {
  // "run/" names the folder, too.
  folder_ = run.has_filename() ? run : run.parent_path();
  std::error_code error;
  const bool is_log = std::filesystem::is_regular_file(folder_, error);
  const QString folder = QString::fromStdString(folder_.string());
  own_ = (is_log ? folder : logFile(folder)).toStdString();
}

// A job that is queued again, or a run that goes on in another job, writes another file.
void RunLog::choose() {
  const auto now = std::chrono::steady_clock::now();
  std::error_code error;
  if (std::filesystem::is_regular_file(own_, error)) {
    file_ = own_;
  } else if (file_.empty() || file_ == own_ || now - chosen_at_ >= kLookAgain) {
    chosen_at_ = now;
    file_ = slurm_log(folder_);
  }
}

const QString& RunLog::read() {
  choose();
  return tail_.read(file_);
}

const QString& LogTail::read(const std::filesystem::path& path) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  const std::uintmax_t size = regular ? std::filesystem::file_size(path, error) : 0;
  const bool same = std::exchange(file_, path) == path;
  if (error || size == 0) {
    size_ = 0;
    text_.clear();
    return text_;
  }
  if (same && size == size_) return text_;
  QFile file(QString::fromStdString(path.string()));
  if (!file.open(QIODevice::ReadOnly)) return text_;
  const bool cut = size > kMostBytes;
  if (cut) file.seek(static_cast<qint64>(size - kMostBytes));
  QByteArray bytes = file.read(static_cast<qint64>(kMostBytes));
  if (cut) bytes.remove(0, bytes.indexOf('\n') + 1);
  static const QRegularExpression colours("\x1b\\[[0-9;]*[A-Za-z]");
  text_ = QString::fromUtf8(bytes).remove(colours).remove('\r').remove(QChar(0)).trimmed();
  size_ = size;
  return text_;
}

QString lastLines(const QString& text, int count) {
  return text.split('\n').mid(std::max<qsizetype>(0, text.count('\n') + 1 - count)).join('\n');
}

}  // namespace tessera::gui
