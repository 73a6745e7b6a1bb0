// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/planner_job.h"

#include <utility>

#include "gui/threads/outcome.h"

namespace tessera::gui {

PlannerJob::PlannerJob(QObject* parent) : QObject(parent) {
  // A new search does not wait for stale ones to end.
  pool_.setMaxThreadCount(4);
}

PlannerJob::~PlannerJob() {
  cancel();
  pool_.waitForDone();
}

quint64 PlannerJob::submit(Work work) {
  cancel();
  const quint64 generation = generation_;
  busy_ = true;
  emit started();
  const auto stoppable = [work = std::move(work), stop = stop_.get_token()] { return work(stop); };
  run_in(pool_, *this, stoppable, [this, generation](Outcome<PlanAnswer> outcome) {
    if (generation != generation_) return;
    busy_ = false;
    emit answerAvailable(generation, outcome.take());
  });
  return generation;
}

void PlannerJob::cancel() {
  ++generation_;
  stop_.request_stop();
  stop_ = std::stop_source();
  pool_.clear();
  busy_ = false;
}

}  // namespace tessera::gui
