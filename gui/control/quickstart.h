// SPDX-License-Identifier: GPL-3.0-or-later
// The quickstart (scripts/quickstart.sh) from the window: `tessera` makes a tiny model and prompts,
// measures this machine and plans the job. What is then started is a run like any other.
//
// All files lie in one folder. GUI thread; the command that is running ends with its owner.
#pragma once

#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <cstddef>
#include <vector>

#include "gui/control/run_start.h"

namespace tessera::gui {

/// One command of it.
struct QuickstartStep {
  QString doing;      // "measuring this machine"
  QStringList words;  // behind "tessera"
};

/// On four processor ranks, into `folder`.
std::vector<QuickstartStep> quickstartSteps(const QString& folder);

class Quickstart : public QObject {
  Q_OBJECT

 public:
  explicit Quickstart(QObject* parent = nullptr);
  ~Quickstart() override;

  /// Makes the folder, absolute. Precondition: it does not exist, and nothing is prepared.
  void begin(const QString& folder);
  void cancel();
  bool isPreparing() const { return !steps_.empty(); }

 signals:
  void doing(const QString& what);
  /// The run can be started.
  void prepared(const StartRequest& request);
  /// It is over; what the command said.
  void refused(const QString& why);

 private:
  void next();
  void take(int code);
  void finish();
  void end();

  QString folder_;
  std::vector<QuickstartStep> steps_;  // empty = nothing is prepared
  std::size_t step_ = 0;
  QProcess process_;
};

}  // namespace tessera::gui
