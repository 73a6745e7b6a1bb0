// SPDX-License-Identifier: GPL-3.0-or-later
// The trace that is looked at instead of the simulated step, read in the background. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <atomic>
#include <cstdint>
#include <memory>

#include "gui/threads/newest.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

class OpenedTrace : public QObject {
  Q_OBJECT

 public:
  explicit OpenedTrace(QObject* parent = nullptr);
  ~OpenedTrace() override { stop(); }

  /// What was open stays until the file has been read, and where it cannot be. `live`: in the
  /// background; else before it returns.
  void open(const QString& file, bool live = true);
  void close();
  /// What is being read is not opened; what is open stays.
  void cancel();

  /// nullptr = none is open.
  const std::shared_ptr<const TimelineIndex>& facts() const { return facts_; }
  bool isBusy() const { return work_.isBusy(); }
  /// "trace.json: 2 processes, 6 threads, 1,234 spans"; empty where none is open.
  QString describe() const;
  /// "Reading trace.json: 43 %"; empty where nothing is being read.
  QString progress() const;

 signals:
  /// Another one, or none.
  void changed();
  /// While a file is read, a few times a second.
  void progressed();
  /// What is wrong with the file.
  void refused(const QString& problems);

 private:
  struct Read {
    std::shared_ptr<const TimelineIndex> facts;
    QString problems;
  };
  /// A file on its way, shared with the threads that read it.
  struct Reading {
    QString file;
    std::atomic<bool> wanted = true;
    std::atomic<std::int64_t> bytes = 0;  // that have been read
  };
  static Read read(Reading& reading);
  void take(Read read);
  void stop();

  std::shared_ptr<const TimelineIndex> facts_;
  std::shared_ptr<Reading> reading_;  // the last one
  QTimer tells_;
  Newest<Read> work_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
