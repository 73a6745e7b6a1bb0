// SPDX-License-Identifier: GPL-3.0-or-later
// The trace that is looked at instead of the simulated step, read in the background. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <memory>

#include "gui/threads/newest.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

class OpenedTrace : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  /// What was open stays until the file has been read, and where it cannot be. `live`: in the
  /// background; else before it returns.
  void open(const QString& file, bool live = true);
  void close();

  /// nullptr = none is open.
  const std::shared_ptr<const TimelineIndex>& facts() const { return facts_; }
  bool isBusy() const { return work_.isBusy(); }
  /// "trace.json: 2 processes, 6 threads, 1,234 spans"; empty where none is open.
  QString describe() const;

 signals:
  /// Another one, or none.
  void changed();
  /// What is wrong with the file.
  void refused(const QString& problems);

 private:
  struct Read {
    std::shared_ptr<const TimelineIndex> facts;
    QString problems;
  };
  static Read read(const QString& file);
  void take(Read read);

  std::shared_ptr<const TimelineIndex> facts_;
  Newest<Read> work_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
