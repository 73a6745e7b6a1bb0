// SPDX-License-Identifier: GPL-3.0-or-later
// Long texts on their way into files: made and written by a thread of their own, one after another,
// each beside its file, whose place it takes when it is whole. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <atomic>
#include <deque>
#include <memory>

#include "gui/document/long_text.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class FileWriting : public QObject {
  Q_OBJECT

 public:
  explicit FileWriting(QObject* parent = nullptr);

  void start(const LongText& text, const QString& file);
  bool isBusy() const { return work_.isBusy(); }
  /// Of all that is on its way no file is written; what was there before stays.
  void cancel();
  /// "Writing timeline.csv: 43 %"; empty while nothing is.
  QString progress() const;

 signals:
  /// One begins, or the last has ended.
  void changed();
  void written(const QString& file);
  /// It is not written: why.
  void refused(const QString& problems);

 private:
  struct Job {
    LongText text;
    QString file;
    std::atomic<double> done = 0;
  };
  void next();

  std::deque<std::shared_ptr<Job>> jobs_;  // the first is written
  Newest<QString> work_;                   // last: its work ends before anything else goes
};

}  // namespace tessera::gui
