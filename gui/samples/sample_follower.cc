// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/samples/sample_follower.h"

#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr qsizetype kMostProblemText = 20'000;  // characters

}  // namespace

SampleFollower::SampleFollower(QObject* parent) : QObject(parent) {}

void SampleFollower::follow(const std::filesystem::path& run) {
  run_ = run;
  up_to_.reset();
  begin();
}

void SampleFollower::showUpTo(std::optional<std::int64_t> step) {
  if (step == up_to_) return;
  up_to_ = step;
  begin();
}

// From nothing.
void SampleFollower::begin() {
  work_.cancel();
  reader_ = run_.empty() ? nullptr : std::make_shared<SampleReader>(run_ / "samples.jsonl", up_to_);
  read_ = earlier_ = later_ = false;
  problems_.clear();
  model_.clear();
  emit changed();
  poll();
}

void SampleFollower::want() {
  if (std::exchange(wanted_, true)) return;
  poll();
}

void SampleFollower::poll() {
  if (!wanted_ || !reader_ || work_.isBusy()) return;
  work_.start([reader = reader_] { return reader->read(); },
              [this](SampleNews news) { take(std::move(news)); });
}

void SampleFollower::take(SampleNews news) {
  const bool first = !std::exchange(read_, true);
  if (news.restarted) {
    model_.clear();
    problems_.clear();
  }
  const bool other = first || news.restarted || !news.samples.empty() || !news.problems.empty() ||
                     news.later != later_;
  earlier_ = news.earlier;
  later_ = news.later;
  if (!news.problems.empty() && problems_.size() < kMostProblemText) {
    problems_ += (problems_.isEmpty() ? "" : "\n") + problemsText(news.problems);
  }
  model_.append(std::move(news.samples));
  if (other) emit changed();
}

QString SampleFollower::extent() const {
  if (run_.empty()) return Words::tr("No run is open");
  if (!read_) return Words::tr("reading samples.jsonl");
  const auto& samples = model_.samples();
  if (samples.empty())
    return later_ ? Words::tr("no sample of that step or an earlier one") : Words::tr("no samples");
  QString text = Words::tr("%1 samples of steps %2 to %3")
                     .arg(countText(static_cast<double>(samples.size())),
                          countText(static_cast<double>(samples.front().step)),
                          countText(static_cast<double>(samples.back().step)));
  if (earlier_ || model_.hasLost()) text += Words::tr("; the file has earlier ones: choose a step");
  return text;
}

}  // namespace tessera::gui
