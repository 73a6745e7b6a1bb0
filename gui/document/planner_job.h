// SPDX-License-Identifier: GPL-3.0-or-later
// Runs searches in the background and delivers the newest answer only.
//
// submit() and the signal belong to the thread of the object (the window's); the work runs on a
// pool of its own. A newer submit() makes all earlier ones stale: those not yet started never run,
// those running are told to stop and end unheard.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <functional>
#include <stop_token>

#include "gui/document/plan_answer.h"

namespace tessera::gui {

class PlannerJob : public QObject {
  Q_OBJECT

 public:
  using Work = std::function<PlanAnswer(const std::stop_token&)>;

  explicit PlannerJob(QObject* parent = nullptr);
  /// Stops the work that runs, and waits for its end.
  ~PlannerJob() override;

  /// Returns the generation that answerAvailable() will carry.
  quint64 submit(Work work);
  /// Makes everything submitted so far stale.
  void cancel();
  bool isBusy() const { return busy_; }

 signals:
  void started();
  void answerAvailable(quint64 generation, const tessera::gui::PlanAnswer& answer);

 private:
  QThreadPool pool_;
  quint64 generation_ = 0;
  std::stop_source stop_;  // of what was submitted last
  bool busy_ = false;
};

}  // namespace tessera::gui
