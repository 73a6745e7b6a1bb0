// SPDX-License-Identifier: GPL-3.0-or-later
// Something that is worked out of the plan that is looked at once somebody wants to see it.
//
// The work runs in the background, once for a plan; plans may pass faster than it ends, and it is
// told to stop when its plan has passed or nobody waits any more. What throws or lacks the plan's
// constants is a problem to be shown. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "cost_models/calibration.h"
#include "gui/document/shared_plan.h"
#include "gui/document/words.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

/// The part that has signals.
class PlanWatch : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  virtual bool isBusy() const = 0;
  /// Who wanted it does not wait any more: nothing begins before goOn(), or another plan.
  virtual void cancel() = 0;
  virtual bool isCancelled() const = 0;
  virtual void goOn() = 0;

 signals:
  /// Another plan, work that began, or its end.
  void changed();
};

template <class Facts>
class PlanJob : public PlanWatch {
 public:
  /// In a thread of its own; may throw what is to be told, and throws Stopped.
  using Work = std::function<Facts(const Plan&, const Calibration&, const std::stop_token&)>;

  explicit PlanJob(Work work) : work_of_(std::move(work)) {}

  /// Forgets what was of another plan.
  void setPlan(SharedPlan plan, const std::optional<Calibration>& calibration) {
    work_.cancel();
    cancelled_ = false;
    facts_.reset();
    plan_ = std::move(plan);
    calibration_ = calibration ? std::make_shared<const Calibration>(*calibration) : nullptr;
    problem_ = calibration ? QString()
                           : Words::tr("The constants that this plan was made with are not here.");
    emit changed();
  }
  /// Begins, unless it is there or on its way.
  void want() {
    if (!plan_ || !calibration_ || facts_ || work_.isBusy() || !problem_.isEmpty()) return;
    if (cancelled_) return;
    const auto work = [of = work_of_, plan = plan_,
                       calibration = calibration_](const std::stop_token& stop) -> Result {
      try {
        return {std::make_shared<const Facts>(of(*plan, *calibration, stop)), {}};
      } catch (const std::exception& error) {
        return {nullptr, QString::fromUtf8(error.what())};
      }
    };
    work_.start(work, [this](Result result) {
      facts_ = std::move(result.facts);
      problem_ = std::move(result.problem);
      emit changed();
    });
    emit changed();
  }

  bool isBusy() const override { return work_.isBusy(); }
  bool isCancelled() const override { return cancelled_; }
  void cancel() override {
    if (!isBusy()) return;
    work_.cancel();
    cancelled_ = true;
    emit changed();
  }
  void goOn() override {
    if (std::exchange(cancelled_, false)) want();
  }
  /// nullptr until they are there.
  const std::shared_ptr<const Facts>& facts() const { return facts_; }
  /// What keeps them from coming; empty = nothing.
  const QString& problem() const { return problem_; }
  /// Why there are none, with what the work is called while it runs; empty = they are there, or
  /// nobody wanted them yet.
  QString whyNone(const QString& work) const {
    if (!plan_) return Words::tr("No plan is open.");
    if (cancelled_) return Words::tr("Cancelled: %1").arg(work);
    return isBusy() ? work : problem_;
  }

 private:
  struct Result {
    std::shared_ptr<const Facts> facts;
    QString problem;
  };

  Work work_of_;
  SharedPlan plan_;
  std::shared_ptr<const Calibration> calibration_;
  std::shared_ptr<const Facts> facts_;
  QString problem_;
  bool cancelled_ = false;
  Newest<Result> work_{2};  // a new one does not wait for one that nobody hears
};

}  // namespace tessera::gui
