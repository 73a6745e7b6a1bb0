// SPDX-License-Identifier: GPL-3.0-or-later
// Starts `tessera run` as a process of its own, which outlives the window: of a plan, or to go on
// with a run that has ended.
//
// The run checks plan, configuration, data and devices itself; what it says before its ranks start
// is why it was refused. Beside its folder stand FOLDER.log, which has all that it prints, and, of
// a plan for a moment, FOLDER.plan.json, which it reads. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <cstdint>
#include <memory>

#include "gui/document/shared_plan.h"

namespace tessera::gui {

/// What is to be run, and where.
struct StartRequest {
  SharedPlan plan;
  QString config;        // a run.yaml, or a preset's name
  QStringList settings;  // KEY=VALUE, that replace keys of it
  QString folder;        // of the run, absolute; must not exist
};

/// A run that is to go on from its newest checkpoint, with the plan and the run file in its folder.
struct ResumeRequest {
  QString folder;              // absolute
  bool on_processors = false;  // its ranks were
};

/// A folder of that name in `above` that does not exist yet: "run", "run-2".
QString newFolderIn(const QString& above, const QString& name);

/// Why nothing can be started so, in a sentence; empty where the run itself is to be asked.
QString whyNoStart(const StartRequest& request);

/// The words of the command behind "tessera". A plan for GPUs is never run on processors.
QStringList wordsOf(const StartRequest& request);
QStringList wordsOf(const ResumeRequest& request);

/// As a person would type it.
QString commandText(const QStringList& words);

class RunStart : public QObject {
  Q_OBJECT

 public:
  explicit RunStart(QObject* parent = nullptr);

  /// Starts the process and watches it until its first rank has begun. Precondition: whyNoStart()
  /// says nothing, and none is starting.
  void begin(const StartRequest& request);
  /// The same of a run that has ended; what it prints stands behind what it printed before.
  /// Precondition: whyNotResumed() (gui/models/run_state.h) says nothing, and none is starting.
  void resume(const ResumeRequest& request);
  bool isStarting() const { return pid_ != 0; }
  const QString& folder() const { return folder_; }

 signals:
  /// Ranks are there: the folder can be followed.
  void started(const QString& folder);
  /// It ended before that; what it said.
  void refused(const QString& why);

 private:
  void launch(const QStringList& words);
  void look();
  void end();

  QString folder_, plan_file_;  // plan_file_: what is removed once it is read; empty = none
  qint64 pid_ = 0;              // 0 = nothing is starting
  qint64 log_size_ = 0;         // before it started
  std::int64_t began_ns_ = 0;   // ranks that began before are of an earlier start
  QTimer timer_;
};

}  // namespace tessera::gui
