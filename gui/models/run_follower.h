// SPDX-License-Identifier: GPL-3.0-or-later
// Follows a run's folder: new lines of metrics.jsonl, what the ranks are doing, the stop file.
//
// A timer in the object's thread reads what is new; one read is bounded by what was written in
// between. Owns the models it fills. Missing files mean that the run has not come so far.
#pragma once

#include <QObject>
#include <QTimer>
#include <filesystem>
#include <memory>
#include <optional>

#include "gui/models/comparison_model.h"
#include "gui/models/rank_state_model.h"
#include "gui/models/run_model.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/metrics.h"

namespace tessera::gui {

class RunFollower : public QObject {
  Q_OBJECT

 public:
  explicit RunFollower(QObject* parent = nullptr);

  /// Begins at the start of the folder's files; polls while `live`.
  void follow(const std::filesystem::path& run, bool live = true);
  /// What a run is compared with whose folder holds no plan.json of its own; nullopt = nothing.
  void setPlan(const std::optional<Plan>& plan);
  /// Reads what is new now.
  void poll();
  void requestStop();

  const std::filesystem::path& folder() const { return run_; }
  bool stopRequested() const;
  RunModel* steps() { return &steps_; }
  RankStateModel* ranks() { return &ranks_; }
  ComparisonModel* comparison() { return &comparison_; }
  const std::optional<Plan>& plan() const { return own_plan_ ? own_plan_ : plan_; }

 signals:
  void folderChanged();
  void polled();
  void problemsFound(const QString& text);

 private:
  void compareAgain();

  std::filesystem::path run_;
  std::unique_ptr<MetricsTail> tail_;
  std::optional<Plan> plan_, own_plan_;
  WireOptions switches_;  // of the run
  QTimer timer_;
  RunModel steps_;
  RankStateModel ranks_;
  ComparisonModel comparison_;
};

}  // namespace tessera::gui
