// SPDX-License-Identifier: GPL-3.0-or-later
// Reads what is new in a run's folder and compares it with the plan: all that takes time.
//
// One thread at a time, any. Files of a stranger: whatever is wrong with them is a Problem.
#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "gui/control/run_log.h"
#include "gui/document/shared_plan.h"
#include "gui/metrics/step_columns.h"
#include "gui/models/rank_state_model.h"
#include "simulator/learn/run_comparison.h"
#include "simulator/remote/heart_watch.h"
#include "simulator/remote/mirror_state.h"
#include "simulator/rules/plan_metrics.h"
#include "simulator/timeline/metrics.h"

namespace tessera::gui {

/// What one reading found.
struct RunNews {
  StepColumns steps;                   // that came
  std::map<std::string, double> last;  // numbers of the last of them
  bool restarted = false;              // they are the run's first: it began again
  std::vector<RankStateModel::Row> ranks;
  RunSummary summary;
  bool copied = false;          // the folder is a copy of a run on another host
  bool on_processors = false;   // its ranks are, as far as is known
  std::optional<LeftRun> left;  // of a run that was stopped, lost or failed
  std::int64_t now_ns = 0;
  std::optional<RunComparison> comparison;    // where something of it changed
  std::optional<Expectation> expectation;     // of another plan than before
  SharedPlan plan;                            // that it is held against
  QString log;                                // the end of what the run printed
  QString log_file;                           // where it is, without folders
  QString step_log;                           // the end of its log.txt, a line for every step
  RoughTimes rough_times = RoughTimes::none;  // of what it is compared with
  Problems problems;  // what is wrong with its files now; of bad lines those that came last
};

class RunReader {
 public:
  explicit RunReader(std::filesystem::path run);

  /// What a run is held against whose folder holds no plan: `chosen`, else `shown` where the run's
  /// steps name its prediction. Either may be null.
  RunNews read(const SharedPlan& shown, const SharedPlan& chosen = nullptr);

 private:
  void readPlan();
  void readSteps(RunNews& news);
  /// What ranks said of themselves at one moment.
  struct Seen {
    std::vector<RankStatus> ranks;
    std::vector<UnreadRank> unread;
    std::vector<Life> lives;  // of `ranks`, in their order
    std::optional<MirrorState> mirror;
  };
  Seen lookAtRanks();
  void tellRanks(Seen seen, RunNews& news);
  double meanStep() const;
  /// Whether the plan's step is the one that the run's steps say was predicted.
  bool isPromisedBy(const Plan& plan) const;
  void comparePlan(const SharedPlan& plan, RunNews& news);
  RunComparison compared() const;

  std::filesystem::path run_;
  MetricsTail tail_;
  RunLog log_;
  LogTail step_log_;
  bool began_ = false;
  std::array<std::int64_t, 2> plan_written_{-1, -1};  // when plan.json and run.yaml were
  Problems plan_problems_, line_problems_;            // of these files, and of metrics.jsonl
  SharedPlan own_plan_, compared_;
  std::optional<Seconds> predicted_step_;      // of the plan that was run, as its steps name it
  std::optional<Calibration> calibration_;     // of compared_
  RoughTimes rough_times_ = RoughTimes::none;  // likewise
  bool on_processors_ = false;                 // the ranks are, as far as is known
  std::size_t compared_steps_ = 0;
  std::chrono::steady_clock::time_point compared_at_;
  HeartWatch hearts_;               // of a copy of a run elsewhere
  WireOptions switches_;            // of the run
  std::vector<StepNumbers> steps_;  // in the file's order; of their numbers those that are compared
};

}  // namespace tessera::gui
