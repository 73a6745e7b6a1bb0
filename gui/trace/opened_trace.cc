// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/opened_trace.h"

#include <QFileInfo>
#include <algorithm>
#include <exception>
#include <set>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/trace/trace_file.h"

namespace tessera::gui {
namespace {

constexpr int kTellsMs = 100;

}  // namespace

OpenedTrace::OpenedTrace(QObject* parent) : QObject(parent) {
  tells_.setInterval(kTellsMs);
  connect(&tells_, &QTimer::timeout, this, &OpenedTrace::progressed);
}

OpenedTrace::Read OpenedTrace::read(Reading& reading) {
  Problems problems;
  const auto part_read = [&](std::string_view part) {
    reading.bytes += static_cast<std::int64_t>(part.size());
    return reading.wanted.load();
  };
  try {
    auto index = read_trace(reading.file.toStdString(), problems, part_read);
    if (index) return {std::make_shared<const TimelineIndex>(*std::move(index)), {}};
  } catch (const std::exception& fault) {
    return {nullptr, QString("%1: %2").arg(reading.file, QString::fromUtf8(fault.what()))};
  }
  return {nullptr, problemsText(problems)};
}

void OpenedTrace::open(const QString& file, bool live) {
  stop();
  const auto reading = reading_ = std::make_shared<Reading>();
  reading->file = file;
  if (!live) return take(read(*reading));
  work_.start([reading] { return read(*reading); }, [this](Read read) { take(std::move(read)); });
  tells_.start();
  emit changed();
}

void OpenedTrace::take(Read read) {
  stop();
  if (read.facts) facts_ = std::move(read.facts);
  emit changed();
  if (!read.problems.isEmpty()) emit refused(read.problems);
}

void OpenedTrace::stop() {
  if (reading_) reading_->wanted = false;
  work_.cancel();
  tells_.stop();
}

void OpenedTrace::cancel() {
  stop();
  emit changed();
}

void OpenedTrace::close() {
  stop();
  facts_.reset();
  emit changed();
}

QString OpenedTrace::progress() const {
  if (!isBusy()) return {};
  const QFileInfo file(reading_->file);
  const auto bytes = static_cast<double>(std::max<qint64>(1, file.size()));
  return Words::tr("Reading %1: %2 %")
      .arg(file.fileName())
      .arg(std::min(100.0, 100 * static_cast<double>(reading_->bytes) / bytes), 0, 'f', 0);
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
