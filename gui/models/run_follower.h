// SPDX-License-Identifier: GPL-3.0-or-later
// Follows a run's folder: new lines of metrics.jsonl, what the ranks are doing, the stop file. Of a
// run of verl its log alone is enough.
//
// A timer in the object's thread has what is new read by a thread of its own. Owns the models it
// fills. Missing files mean that the run has not come so far.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <QTimer>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "gui/document/shared_plan.h"
#include "gui/models/comparison_model.h"
#include "gui/models/rank_state_model.h"
#include "gui/models/rule_model.h"
#include "gui/models/run_model.h"
#include "gui/models/run_reader.h"
#include "gui/threads/outcome.h"
#include "simulator/timeline/metrics.h"
#include "simulator/timeline/run_signal.h"

namespace tessera::gui {

class RunFollower : public QObject {
  Q_OBJECT

 public:
  explicit RunFollower(QObject* parent = nullptr);
  /// Waits for a reading that is under way.
  ~RunFollower() override;

  /// Begins at the start of the folder's files. `live`: reads in the background, again and again;
  /// else once, before it returns.
  void follow(const std::filesystem::path& run, bool live = true);
  /// No run is followed any more; those beside it stay.
  void close();
  /// The plan that is shown: a run without a plan.json of its own is held against it where its
  /// steps name its prediction.
  void setPlan(SharedPlan plan);
  /// Whatever is shown, the run that is followed ran this plan, as somebody says who knows it.
  void choosePlan(SharedPlan plan);
  /// Reads what is new now, in this thread.
  void poll();
  /// As `tessera signal` does, in the background; what speaks against it is a problem.
  void tell(RunSignal signal);
  /// Another run, to be drawn beside this one: its steps so far. `live`: read in the background,
  /// and whenever the run that is followed is read, too.
  void addOther(const std::filesystem::path& folder, bool live = true);
  void clearOthers();

  /// Steps of a run beside the one that is followed.
  struct Other {
    std::filesystem::path folder;
    QString name;  // as that of the run that is followed
    std::shared_ptr<RunModel> steps;
    std::shared_ptr<MetricsTail> tail;  // of a live one: the pool's; nullptr = it is not followed
  };
  const std::vector<Other>& others() const { return others_; }

  /// By the name that run_folder() gives it; empty = none.
  const std::filesystem::path& folder() const { return run_; }
  /// As much of the folder's end as tells it from those that are drawn beside it.
  QString name() const;
  bool stopRequested() const;
  bool pauseRequested() const;
  /// What it was told is not done yet.
  bool isTelling() const { return telling_ > 0; }
  /// Nothing of the folder has been read so far.
  bool isLoading() const { return loading_; }
  /// The folder is a copy of a run on another host, which hears nothing from here.
  bool isCopy() const { return copied_; }
  const RunSummary& summary() const { return summary_; }
  /// What it left where it was stopped, lost or failed.
  const std::optional<LeftRun>& left() const { return left_; }
  /// Its ranks are on processors, as far as is known.
  bool isOnProcessors() const { return on_processors_; }
  /// The end of what the run printed (gui/control/run_log.h); empty = no log is there.
  const QString& log() const { return log_; }
  /// The name of its file.
  const QString& logFile() const { return log_file_; }
  /// The end of the run's log.txt, which has a line for every step; empty = it has none.
  const QString& stepLog() const { return step_log_; }
  /// Which times of what it is compared with may be wrong by factors; rules do not judge by them.
  RoughTimes roughTimes() const { return rough_times_; }
  /// Why rules do not judge by them; empty where they do.
  QString whyTimesAreNotJudged() const;
  RunModel* steps() { return &steps_; }
  RankStateModel* ranks() { return &ranks_; }
  ComparisonModel* comparison() { return &comparison_; }
  RuleModel* rules() { return &rules_; }
  /// What the run is held against; nullptr = nothing.
  const Plan* plan() const { return held_.get(); }
  /// That was chosen for it.
  bool isPlanChosen() const { return held_ != nullptr && held_ == chosen_; }
  /// Steps are there, and nobody knows of what plan.
  bool lacksPlan() const { return held_ == nullptr && !steps_.steps().empty(); }
  /// Which plan that is where its folder has none; empty where it has.
  QString whoseTimes() const;

 signals:
  void folderChanged();
  void polled();
  void othersChanged();
  void problemsFound(const QString& text);
  /// What was said to be wrong with the files of the run that is followed is so no more.
  void problemsGone(const QString& text);
  /// It was told something, with or without success.
  void told();

 private:
  void begin(const std::filesystem::path& run);
  void pollLater();
  template <class News>
  std::optional<News> takeOnce(Outcome<News>& outcome);
  void take(RunNews news);
  /// What came of a run beside it.
  struct OtherNews {
    std::shared_ptr<MetricsTail> tail;
    StepColumns steps;
    bool restarted = false;  // they are its first: it began again
    Problems problems;
  };
  static OtherNews readOther(const std::filesystem::path& run, bool live);
  using Tails = std::vector<std::shared_ptr<MetricsTail>>;
  static std::vector<OtherNews> readTails(const Tails& tails);
  void takeOther(const std::filesystem::path& run, OtherNews news);
  std::vector<std::filesystem::path> folders() const;
  void nameOthers();
  void takeTails(std::vector<OtherNews> news);

  std::filesystem::path run_;
  std::shared_ptr<RunReader> reader_;
  SharedPlan plan_, chosen_, held_;
  bool loading_ = false, reading_ = false, copied_ = false, on_processors_ = false;
  int telling_ = 0;
  QString problems_;  // with its files, as of the last reading
  QString fault_;     // that the last reading in the background threw; empty = none
  RunSummary summary_;
  std::optional<LeftRun> left_;
  QString log_, log_file_, step_log_;
  RoughTimes rough_times_ = RoughTimes::none;
  QTimer timer_;
  RunModel steps_;
  RankStateModel ranks_;
  ComparisonModel comparison_;
  RuleModel rules_;
  std::vector<Other> others_;
  QThreadPool pool_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
