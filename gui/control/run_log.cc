// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/control/run_log.h"

#include <QFile>
#include <QRegularExpression>
#include <algorithm>
#include <system_error>

namespace tessera::gui {
namespace {

constexpr std::uintmax_t kMostBytes = 64 << 10;

}  // namespace

QString logFile(const QString& folder) { return folder + ".log"; }

RunLog::RunLog(const std::filesystem::path& run) {
  // "run/" names the folder, too.
  const std::filesystem::path folder = run.has_filename() ? run : run.parent_path();
  file_ = logFile(QString::fromStdString(folder.string())).toStdString();
}

const QString& RunLog::read() {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(file_, error);
  const std::uintmax_t size = regular ? std::filesystem::file_size(file_, error) : 0;
  if (error || size == 0) {
    size_ = 0;
    text_.clear();
    return text_;
  }
  if (size == size_) return text_;
  QFile file(QString::fromStdString(file_.string()));
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
