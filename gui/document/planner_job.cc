// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/planner_job.h"

#include <exception>
#include <utility>

namespace tessera::gui {

PlannerJob::PlannerJob(QObject* parent) : QObject(parent) {
  // A new search does not wait for stale ones to end.
  pool_.setMaxThreadCount(4);
}

PlannerJob::~PlannerJob() {
  pool_.clear();
  pool_.waitForDone();
}

quint64 PlannerJob::submit(Work work) {
  const quint64 generation = ++generation_;
  pool_.clear();
  busy_ = true;
  emit started();
  pool_.start([this, generation, work = std::move(work)] {
    PlanAnswer answer;
    std::exception_ptr fault;
    try {
      answer = work();
    } catch (...) {
      fault = std::current_exception();
    }
    QMetaObject::invokeMethod(
        this,
        [this, generation, fault, answer = std::move(answer)] {
          if (fault && generation == generation_) {
            busy_ = false;
            std::rethrow_exception(fault);
          }
          deliver(generation, answer);
        },
        Qt::QueuedConnection);
  });
  return generation;
}

void PlannerJob::cancel() {
  ++generation_;
  pool_.clear();
  busy_ = false;
}

void PlannerJob::deliver(quint64 generation, const PlanAnswer& answer) {
  if (generation != generation_) return;
  busy_ = false;
  emit answerAvailable(generation, answer);
}

}  // namespace tessera::gui
