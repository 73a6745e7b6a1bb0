// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_follower.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "gui/document/headline.h"
#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostOthers = 4;

using Path = std::filesystem::path;

// The last `depth` parts: "monday" of "runs/monday", and of "runs/monday/".
QString endOf(const Path& run, int depth) {
  Path folder = run.has_filename() ? run : run.parent_path();
  Path end;
  for (; depth > 0 && folder.has_filename(); --depth, folder = folder.parent_path()) {
    end = end.empty() ? folder.filename() : folder.filename() / end;
  }
  return QString::fromStdString(end.string());
}

// As much of the end of its path as tells it from the others: "monday", or "first/run".
QString nameOf(const Path& run, const std::vector<Path>& others) {
  int depth = 1;
  const auto same = [&](const Path& other) {
    return other != run && endOf(other, depth) == endOf(run, depth);
  };
  while (endOf(run, depth) != endOf(run, depth + 1) &&
         std::any_of(others.begin(), others.end(), same)) {
    ++depth;
  }
  return endOf(run, depth);
}

}  // namespace

RunFollower::RunFollower(QObject* parent) : QObject(parent) {
  pool_.setMaxThreadCount(1);
  timer_.setInterval(500);
  connect(&timer_, &QTimer::timeout, this, &RunFollower::pollLater);
}

RunFollower::~RunFollower() { pool_.waitForDone(); }

// Nothing is known of it.
void RunFollower::begin(const std::filesystem::path& run) {
  timer_.stop();
  run_ = run.empty() ? run : run_folder(run);
  reader_ = run_.empty() ? nullptr : std::make_shared<RunReader>(run_);
  reading_ = false;
  loading_ = !run_.empty();
  summary_ = {};
  left_.reset();
  log_.clear();
  step_log_.clear();
  rough_times_ = RoughTimes::none;
  copied_ = false;
  fault_.clear();
  problems_.clear();
  chosen_.reset();
  held_.reset();
  steps_.clear();
  const bool beside =
      std::erase_if(others_, [this](const Other& each) { return each.folder == run_; });
  ranks_.setStates({}, 0);
  comparison_.setComparison({});
  rules_.setValues({});
  nameOthers();
  emit folderChanged();
  if (beside) emit othersChanged();
}

void RunFollower::close() {
  if (!run_.empty()) begin({});
}

void RunFollower::follow(const std::filesystem::path& run, bool live) {
  begin(run);
  if (!live) {
    poll();
    return;
  }
  pollLater();
  timer_.start();
}

void RunFollower::setPlan(SharedPlan plan) {
  plan_ = std::move(plan);
  if (!reader_) return;
  timer_.isActive() ? pollLater() : poll();
}

void RunFollower::choosePlan(SharedPlan plan) {
  chosen_ = std::move(plan);
  if (!reader_) return;
  timer_.isActive() ? pollLater() : poll();
}

void RunFollower::poll() {
  if (!reader_) return;
  pool_.waitForDone();  // the reader is one thread's at a time
  take(reader_->read(plan_, chosen_));
}

void RunFollower::pollLater() {
  if (!reader_ || reading_) return;
  reading_ = true;
  Tails tails;
  for (const Other& other : others_) {
    if (other.tail) tails.push_back(other.tail);
  }
  using News = std::pair<RunNews, std::vector<OtherNews>>;
  const auto read = [reader = reader_, shown = plan_, chosen = chosen_, tails] {
    RunNews news = reader->read(shown, chosen);
    return News(std::move(news), readTails(tails));
  };
  run_in(pool_, *this, read, [this, reader = reader_](Outcome<News> outcome) {
    const bool now = reader == reader_;  // no other run was opened meanwhile
    if (now) reading_ = false;
    auto news = takeOnce(outcome);
    if (!news) return;
    takeTails(std::move(news->second));
    if (now) take(std::move(news->first));
  });
}

// What every reading throws is thrown once.
template <class News>
std::optional<News> RunFollower::takeOnce(Outcome<News>& outcome) {
  try {
    std::optional<News> news = outcome.take();
    fault_.clear();
    return news;
  } catch (const std::exception& fault) {
    const QString text = faultText(fault);
    if (text == std::exchange(fault_, text)) return std::nullopt;
    throw;
  }
}

void RunFollower::take(RunNews news) {
  loading_ = false;
  held_ = news.plan;
  summary_ = news.summary;
  left_ = news.left;
  log_ = news.log;
  log_file_ = news.log_file;
  step_log_ = news.step_log;
  rough_times_ = news.rough_times;
  copied_ = news.copied;
  on_processors_ = news.on_processors;
  if (news.restarted) steps_.clear();
  if (news.expectation) rules_.setExpectation(*news.expectation);
  if (!news.steps.steps.empty() || news.restarted) rules_.setValues(news.last);
  steps_.append(std::move(news.steps));
  if (news.comparison) comparison_.setComparison(*news.comparison);
  ranks_.setStates(news.ranks, news.now_ns);
  const QString problems = news.problems.empty() ? QString() : problemsText(news.problems);
  const QString before = std::exchange(problems_, problems);
  if (problems != before) emit problems.isEmpty() ? problemsGone(before) : problemsFound(problems);
  emit polled();
}

// What is wrong with it now keeps it from being followed.
RunFollower::OtherNews RunFollower::readOther(const std::filesystem::path& run, bool live) {
  OtherNews news;
  const std::filesystem::path file = metrics_file(run);
  const auto tail = std::make_shared<MetricsTail>(file);
  Problems unheard;
  news.steps = columns_of(*tail, unheard);
  if (unheard.empty() && !news.steps.steps.empty()) {
    if (live) news.tail = tail;
    return news;
  }
  const auto steps = read_metrics(file, news.problems);
  if (steps) news.steps = columns_of(*steps);
  return news;
}

// Lines that cannot be read are told once, when the run is opened.
std::vector<RunFollower::OtherNews> RunFollower::readTails(const Tails& tails) {
  std::vector<OtherNews> all;
  for (const auto& tail : tails) {
    OtherNews news{.tail = tail};
    news.steps = columns_of(*tail, news.problems);
    news.restarted = tail->restarted();
    if (!news.steps.steps.empty() || news.restarted) all.push_back(std::move(news));
  }
  return all;
}

void RunFollower::addOther(const std::filesystem::path& folder, bool live) {
  const Path run = run_folder(folder);
  if (run == run_) return;  // it is drawn
  if (!live) {
    takeOther(run, readOther(run, live));
    return;
  }
  run_in(
      pool_, *this, [run] { return readOther(run, true); },
      [this, run](Outcome<OtherNews> news) { takeOther(run, news.take()); });
}

void RunFollower::takeOther(const std::filesystem::path& run, OtherNews news) {
  if (!news.problems.empty()) {
    emit problemsFound(problemsText(news.problems));
    return;
  }
  if (run == run_) return;
  std::erase_if(others_, [&](const Other& other) { return other.folder == run; });
  if (others_.size() == kMostOthers) others_.erase(others_.begin());
  const auto model = std::make_shared<RunModel>();
  model->append(std::move(news.steps));
  others_.push_back({run, {}, model, news.tail});
  nameOthers();
  emit othersChanged();
}

// Of the run that is followed and those beside it.
std::vector<std::filesystem::path> RunFollower::folders() const {
  std::vector<Path> all{run_};
  for (const Other& other : others_) all.push_back(other.folder);
  return all;
}

void RunFollower::nameOthers() {
  for (Other& other : others_) other.name = nameOf(other.folder, folders());
}

void RunFollower::takeTails(std::vector<OtherNews> news) {
  bool any = false;
  for (OtherNews& one : news) {
    for (const Other& other : others_) {
      if (other.tail != one.tail) continue;
      if (one.restarted) other.steps->clear();
      other.steps->append(std::move(one.steps));
      any = true;
      break;
    }
  }
  if (any) emit othersChanged();
}

void RunFollower::clearOthers() {
  others_.clear();
  emit othersChanged();
}

void RunFollower::tell(RunSignal signal) {
  if (run_.empty()) return;
  ++telling_;
  const auto send = [run = run_, signal] {
    try {
      send_signal(run, signal, "the window");
    } catch (const std::exception& fault) {
      return faultText(fault);
    }
    return QString();
  };
  run_in(pool_, *this, send, [this](Outcome<QString> problems) {
    --telling_;
    if (const QString text = problems.take(); !text.isEmpty()) emit problemsFound(text);
    emit told();
  });
}

QString RunFollower::whyTimesAreNotJudged() const {
  return plan() == nullptr ? QString() : said(why_times_are_not_judged(rough_times_, *plan()));
}

QString RunFollower::whoseTimes() const {
  if (lacksPlan()) return Words::tr("the run has no plan: nothing is compared with a prediction");
  if (!isPlanChosen()) return {};
  return Words::tr("held against the plan %1, which was chosen for it").arg(planTitle(*held_));
}

QString RunFollower::name() const { return nameOf(run_, folders()); }

bool RunFollower::stopRequested() const { return !run_.empty() && stop_requested(run_); }

bool RunFollower::pauseRequested() const { return !run_.empty() && pause_requested(run_); }

}  // namespace tessera::gui
