// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_follower.h"

#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostOthers = 4;

}  // namespace

RunFollower::RunFollower(QObject* parent) : QObject(parent) {
  pool_.setMaxThreadCount(1);
  timer_.setInterval(500);
  connect(&timer_, &QTimer::timeout, this, &RunFollower::pollLater);
}

RunFollower::~RunFollower() { pool_.waitForDone(); }

void RunFollower::follow(const std::filesystem::path& run, bool live) {
  timer_.stop();
  run_ = run;
  reader_ = std::make_shared<RunReader>(run_);
  reading_ = false;
  loading_ = true;
  summary_ = {};
  copied_ = false;
  own_plan_.reset();
  steps_.clear();
  ranks_.setStates({}, 0);
  comparison_.setComparison({});
  rules_.setValues({});
  emit folderChanged();
  if (!live) {
    poll();
    return;
  }
  pollLater();
  timer_.start();
}

void RunFollower::setPlan(const std::optional<Plan>& plan) {
  plan_ = plan ? std::make_shared<const Plan>(*plan) : nullptr;
  if (!reader_) return;
  timer_.isActive() ? pollLater() : poll();
}

void RunFollower::poll() {
  if (!reader_) return;
  pool_.waitForDone();  // the reader is one thread's at a time
  take(reader_->read(plan_));
}

void RunFollower::pollLater() {
  if (!reader_ || reading_) return;
  reading_ = true;
  pool_.start([this, reader = reader_, plan = plan_] {
    auto news = std::make_shared<const RunNews>(reader->read(plan));
    QMetaObject::invokeMethod(
        this,
        [this, reader, news] {
          if (reader != reader_) return;  // another run was opened meanwhile
          reading_ = false;
          take(*news);
        },
        Qt::QueuedConnection);
  });
}

void RunFollower::take(const RunNews& news) {
  loading_ = false;
  own_plan_ = news.own_plan;
  summary_ = news.summary;
  copied_ = news.copied;
  if (news.restarted) steps_.clear();
  if (news.expectation) rules_.setExpectation(*news.expectation);
  if (!news.steps.empty()) rules_.setValues(news.steps.back().data);
  steps_.append(news.steps);
  if (news.comparison) comparison_.setComparison(*news.comparison);
  ranks_.setStates(news.ranks, news.now_ns);
  if (!news.problems.empty()) emit problemsFound(problemsText(news.problems));
  emit polled();
}

void RunFollower::addOther(const std::filesystem::path& run, bool live) {
  const auto read = [run] {
    auto found = std::make_shared<std::pair<std::vector<StepNumbers>, Problems>>();
    if (auto steps = read_metrics(run / "metrics.jsonl", found->second)) {
      found->first = *std::move(steps);
    }
    return found;
  };
  if (!live) {
    const auto found = read();
    takeOther(run, found->first, found->second);
    return;
  }
  pool_.start([this, run, read] {
    QMetaObject::invokeMethod(
        this, [this, run, found = read()] { takeOther(run, found->first, found->second); },
        Qt::QueuedConnection);
  });
}

void RunFollower::takeOther(const std::filesystem::path& run, const std::vector<StepNumbers>& steps,
                            const Problems& problems) {
  if (!problems.empty()) {
    emit problemsFound(problemsText(problems));
    return;
  }
  if (others_.size() == kMostOthers) others_.erase(others_.begin());
  const auto model = std::make_shared<RunModel>();
  model->append(steps);
  others_.push_back({run, QString::fromStdString(run.filename().string()), model});
  emit othersChanged();
}

void RunFollower::clearOthers() {
  others_.clear();
  emit othersChanged();
}

void RunFollower::tell(RunSignal signal) {
  if (run_.empty()) return;
  ++telling_;
  pool_.start([this, run = run_, signal] {
    QString problems;
    try {
      send_signal(run, signal, "the window");
    } catch (const Error& error) {
      problems = problemsText(error.problems());
    }
    QMetaObject::invokeMethod(
        this,
        [this, problems] {
          --telling_;
          if (!problems.isEmpty()) emit problemsFound(problems);
          emit told();
        },
        Qt::QueuedConnection);
  });
}

bool RunFollower::stopRequested() const { return !run_.empty() && stop_requested(run_); }

bool RunFollower::pauseRequested() const { return !run_.empty() && pause_requested(run_); }

}  // namespace tessera::gui
