// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/opened_trace.h"

#include <QFileInfo>
#include <exception>
#include <set>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/trace/trace_file.h"

namespace tessera::gui {

OpenedTrace::Read OpenedTrace::read(const QString& file) {
  Problems problems;
  try {
    auto index = read_trace(file.toStdString(), problems);
    if (index) return {std::make_shared<const TimelineIndex>(*std::move(index)), {}};
  } catch (const std::exception& fault) {
    return {nullptr, QString("%1: %2").arg(file, QString::fromUtf8(fault.what()))};
  }
  return {nullptr, problemsText(problems)};
}

void OpenedTrace::open(const QString& file, bool live) {
  if (!live) {
    work_.cancel();
    return take(read(file));
  }
  work_.start([file] { return read(file); }, [this](Read read) { take(std::move(read)); });
  emit changed();
}

void OpenedTrace::take(Read read) {
  if (read.facts) facts_ = std::move(read.facts);
  emit changed();
  if (!read.problems.isEmpty()) emit refused(read.problems);
}

void OpenedTrace::close() {
  work_.cancel();
  facts_.reset();
  emit changed();
}

QString OpenedTrace::describe() const {
  if (!facts_) return {};
  const TraceNames& trace = *facts_->trace;
  std::set<int> tracks;
  for (const Lane& lane : facts_->lanes) tracks.insert(lane.track);
  const QString text = Words::tr("%1: %2 processes, %3 threads, %4 spans")
                           .arg(QFileInfo(toText(trace.file)).fileName())
                           .arg(facts_->groups.size())
                           .arg(tracks.size())
                           .arg(countText(static_cast<double>(facts_->name_of.size())));
  if (trace.left_out == 0) return text;
  return text + Words::tr("; %1 events are no spans and left out (counters, flows, instants)")
                    .arg(countText(static_cast<double>(trace.left_out)));
}

}  // namespace tessera::gui
