// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_reader.h"

#include <QDateTime>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

#include "cost_models/spec/device/device_kind.h"
#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"
#include "simulator/learn/measured_run.h"
#include "simulator/rules/plan_metrics.h"

namespace tessera::gui {
namespace {

// A long run is compared again only every so often: its means hardly change.
constexpr std::size_t kManySteps = 500;
constexpr std::chrono::seconds kCompareAgain{5};

std::int64_t ns_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// When a file was written last, 0 where there is none.
std::int64_t written_ns(const std::filesystem::path& file) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(file, error);
  return error ? 0 : ns_of(std::chrono::file_clock::to_sys(time));
}

bool hasPlanFile(const std::filesystem::path& run) {
  std::error_code error;
  return std::filesystem::exists(run / "plan.json", error);
}

}  // namespace

RunReader::RunReader(std::filesystem::path run)
    : run_(std::move(run)), tail_(metrics_file(run_)), log_(run_) {}

// Again where somebody wrote it anew.
void RunReader::readPlan() {
  const std::array written{written_ns(run_ / "plan.json"), written_ns(run_ / "run.yaml")};
  if (std::exchange(plan_written_, written) == written) return;
  plan_problems_.clear();
  if (!hasPlanFile(run_)) return;
  if (auto plan = read_plan(run_ / "plan.json", plan_problems_)) {
    own_plan_ = std::make_shared<const Plan>(*std::move(plan));
  }
  switches_ = read_wire_options(run_, plan_problems_);
}

// Of the numbers that are compared a copy stays, in the file's order.
void RunReader::readSteps(RunNews& news) {
  ColumnWriter columns(news.steps);
  std::vector<StepNumbers> fresh;
  std::vector<std::size_t> compared;  // places of these among the line's names
  std::int64_t layout = -1;
  const auto take = [&](const MetricLine& line) {
    columns.append(line);
    if (std::exchange(layout, line.layout) != line.layout) {
      compared.clear();
      for (std::size_t i = 0; i < line.names.size(); ++i) {
        if (is_compared(line.names[i])) compared.push_back(i);
      }
    }
    StepNumbers& step = fresh.emplace_back();
    step.step = line.step;
    for (const std::size_t i : compared) {
      if (!std::isnan(line.values[i])) step.data.emplace(line.names[i], line.values[i]);
    }
  };
  Problems fresh_problems;
  tail_.read_new(take, fresh_problems);
  if (tail_.restarted() || !fresh_problems.empty()) line_problems_ = std::move(fresh_problems);
  news.last = news.steps.last();
  news.restarted = tail_.restarted();
  if (news.restarted) steps_.clear();
  std::move(fresh.begin(), fresh.end(), std::back_inserter(steps_));
}

double RunReader::meanStep() const {
  double sum = 0;
  int count = 0;
  for (auto step = steps_.rbegin(); step != steps_.rend() && count < 10; ++step) {
    const auto found = step->data.find("timing_s/step");
    if (found == step->data.end()) continue;
    sum += found->second;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

RunReader::Seen RunReader::lookAtRanks() {
  RankFiles files = read_rank_files(run_, own_plan_ ? own_plan_->world_size() : 0);
  Seen seen{
      .ranks = {}, .unread = faulty_ranks(files), .lives = {}, .mirror = read_mirror_state(run_)};
  seen.ranks = std::move(files.ranks);
  if (seen.mirror) {
    // As of the last contact, whose clock is that of the run's host.
    seen.lives = lives_by(hearts_.look(seen.ranks, seen.mirror->as_of_ns));
    for (std::size_t i = 0; i < seen.ranks.size(); ++i) {
      const bool gone = std::ranges::count(seen.mirror->gone, seen.ranks[i].rank) > 0;
      if (gone) seen.lives[i] = Life::gone;  // the run's host looked for its process
    }
    return seen;
  }
  std::vector<bool> alive;
  for (const RankStatus& rank : seen.ranks) alive.push_back(is_alive(rank.pid));
  const bool open = std::any_of(seen.ranks.begin(), seen.ranks.end(), [](const RankStatus& rank) {
    return rank.state == RankState::running;
  });
  const bool any_gone = std::find(alive.begin(), alive.end(), false) != alive.end();
  const RunHolder holder = open && any_gone ? read_holder(run_) : RunHolder{};
  const bool several = own_plan_ && own_plan_->cluster.nodes > 1;
  const int per_host = several ? static_cast<int>(own_plan_->cluster.gpus_per_node) : 0;
  seen.lives = lives_of(seen.ranks, alive, holder, own_host(), per_host);
  return seen;
}

void RunReader::tellRanks(Seen seen, RunNews& news) {
  const bool old = seen.mirror && seen.mirror->is_old(news.now_ns);
  if (seen.mirror) {
    news.copied = true;
    news.now_ns = seen.mirror->as_of_ns;
  }
  news.summary = summary_of(seen.ranks, seen.lives, requested_stop(run_), meanStep(),
                            written_ns(metrics_file(run_)), news.now_ns, seen.unread);
  if (seen.ranks.empty() && seen.unread.empty() && !steps_.empty()) {
    news.summary.text = Words::tr("%1 steps were measured; its ranks left nothing here")
                            .arg(countText(static_cast<double>(steps_.size())));
  }
  const bool goes_on =
      news.summary.state == RunState::running || news.summary.state == RunState::stalled;
  if (goes_on && requested_stop(run_) == StopReason::none && pause_requested(run_)) {
    news.summary.text = Words::tr("%1; it was asked to pause, and does once this step has ended")
                            .arg(news.summary.text);
  }
  if (old) {
    const QDateTime last = QDateTime::fromMSecsSinceEpoch(seen.mirror->reached_ns / 1'000'000);
    news.summary = {
        RunState::unreached,
        Words::tr("not reached since %1 (%2); then: %3")
            .arg(last.toString("yyyy-MM-dd HH:mm:ss"),
                 seen.mirror->fault.empty() ? Words::tr("nobody asks") : toText(seen.mirror->fault),
                 news.summary.text)};
  }
  if (!is_run_there(run_)) {
    news.summary = {
        RunState::unseen,
        Words::tr("the folder of the run is gone: %1").arg(QString::fromStdString(run_.string()))};
  }
  for (std::size_t i = 0; i < seen.ranks.size(); ++i) {
    const bool stalled = seen.ranks[i].rank == news.summary.stalled_rank;
    news.ranks.push_back({std::move(seen.ranks[i]), seen.lives[i], {}, stalled});
  }
  for (const UnreadRank& rank : seen.unread) {
    news.ranks.push_back({{.rank = rank.rank}, Life::elsewhere, faultOf(rank)});
  }
}

// As `tessera compare` does; before a step is measured the prediction alone.
RunComparison RunReader::compared() const {
  if (!compared_) return {};
  Problems unheard;
  try {
    std::optional<MeasuredRun> run;
    if (steps_.empty()) {
      run = MeasuredRun{.plan = *compared_, .planned = compared_->workload};
    } else {
      run = measured_run(run_.string(), *compared_, steps_, std::nullopt, unheard);
    }
    if (run && calibration_) return compare_run(*run, *calibration_, switches_);
  } catch (const std::exception&) {
    // A plan that cannot be priced has no error bars.
  }
  return {.times = compare(*compared_, steps_, 0, switches_)};
}

bool RunReader::isPromisedBy(const Plan& plan) const {
  const Seconds step = plan.prediction.step_s;
  return predicted_step_ && std::abs(*predicted_step_ / step - 1) < 1e-6;
}

void RunReader::comparePlan(const SharedPlan& plan, RunNews& news) {
  const auto now = std::chrono::steady_clock::now();
  const bool on_processors = news.last.empty()
                                 ? on_processors_
                                 : ranks_on_processors({news.last.begin(), news.last.end()});
  const bool other = plan != compared_ || on_processors != on_processors_;
  if (!other && !news.restarted && steps_.size() > kManySteps &&
      now - compared_at_ < kCompareAgain) {
    return;
  }
  compared_ = plan;
  on_processors_ = on_processors;
  if (other) {
    Problems unheard;
    calibration_.reset();
    if (plan) {
      if (auto constants = constants_of(*plan, unheard)) {
        calibration_ = std::move(constants->calibration);
      }
    }
    RunExpectation held;
    if (calibration_) held = expectation_of_run(*plan, *calibration_, on_processors);
    news.expectation = std::move(held.expectation);
    rough_times_ = held.rough;
  }
  news.comparison = compared();
  compared_steps_ = steps_.size();
  compared_at_ = now;
}

RunNews RunReader::read(const SharedPlan& shown, const SharedPlan& chosen) {
  RunNews news;
  news.now_ns = ns_of(std::chrono::system_clock::now());
  const bool first = !std::exchange(began_, true);
  readPlan();
  // Before the steps, so that all those of a finished run are there.
  Seen seen = lookAtRanks();
  readSteps(news);
  news.log = log_.read();
  news.log_file = QString::fromStdString(log_.file().filename().string());
  news.step_log = step_log_.read(run_ / "log.txt");
  news.problems = plan_problems_;
  news.problems.insert(news.problems.end(), line_problems_.begin(), line_problems_.end());
  const auto predicted = news.last.find("plan/predicted_step_s");
  if (predicted != news.last.end()) predicted_step_ = Seconds{predicted->second};
  SharedPlan with = own_plan_ ? own_plan_ : chosen;
  if (!with && shown && isPromisedBy(*shown)) with = shown;
  news.plan = with;
  if (!with && predicted_step_ && !hasPlanFile(run_)) {
    news.problems.push_back(
        {(run_ / "plan.json").string(), "", QT_TRANSLATE_NOOP("Words", "no such file"),
         QT_TRANSLATE_NOOP("Words",
                           "the plan that was run: nothing is compared with what it predicts"),
         ""});
  }
  if (first || with != compared_ || steps_.size() != compared_steps_ || news.restarted) {
    comparePlan(with, news);
  }
  news.rough_times = rough_times_;
  tellRanks(std::move(seen), news);
  news.on_processors = on_processors_ || (own_plan_ && is_cpu(own_plan_->cluster.device));
  const RunState state = news.summary.state;
  if (state == RunState::stopped || state == RunState::lost || state == RunState::failed) {
    news.left = left_of(run_);
  }
  return news;
}

}  // namespace tessera::gui
