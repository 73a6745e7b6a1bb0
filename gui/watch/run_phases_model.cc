// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/watch/run_phases_model.h"

#include <QFont>
#include <algorithm>
#include <cmath>
#include <span>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/metrics/phase_seconds.h"
#include "gui/models/colours.h"
#include "gui/translations/said.h"
#include "gui/units/number_role.h"
#include "simulator/learn/measured_run.h"
#include "simulator/timeline/measured_phase.h"

namespace tessera::gui {
namespace {

constexpr std::string_view kStep = "step";

// Phases in their order, what is no phase behind them.
int placeOf(const std::string& phase) {
  const auto known = phase_from(phase);
  return known ? static_cast<int>(*known) : static_cast<int>(kEveryPhase.size());
}

}  // namespace

std::vector<std::pair<std::string, PhaseTime>> phase_times(const StepColumns& steps) {
  std::vector<std::pair<std::string, PhaseTime>> times;
  const auto step = steps.columns.find("timing_s/step");
  if (step == steps.columns.end()) return times;
  std::vector<std::size_t> rows;
  std::vector<double> seconds;  // of these
  for (std::size_t row = 0; row < step->second.size(); ++row) {
    if (!(step->second[row] > 0)) continue;  // it was only validated
    rows.push_back(row);
    seconds.push_back(step->second[row]);
  }
  const auto counted = std::span(rows).subspan(warm_up_steps(seconds));
  std::vector<StepNumbers> whole;  // of the counted ones what tells a step's own time
  for (const std::size_t row : counted) whole.push_back({0, {{step->first, step->second[row]}}});
  for (const Phase phase : kEveryPhase) {
    const std::vector<double> taken = phase_seconds(steps, phase);
    std::vector<double> timed;
    for (std::size_t i = 0; !taken.empty() && i < counted.size(); ++i) {
      if (std::isnan(taken[counted[i]])) continue;
      timed.push_back(taken[counted[i]]);
      if (phase == Phase::save_checkpoint)
        whole[i].data.emplace("timing_s/save_checkpoint", timed.back());
    }
    if (timed.empty()) continue;
    times.emplace_back(name_of(phase),
                       PhaseTime{mean_of(timed), std::ssize(timed), std::ssize(counted)});
  }
  if (const std::vector<double> own = step_seconds(whole); !own.empty()) {
    times.emplace_back(kStep, PhaseTime{mean_of(own), std::ssize(own), std::ssize(own)});
  }
  return times;
}

void RunPhasesModel::setRuns(const std::vector<Run>& runs) {
  beginResetModel();
  names_.clear();
  rows_.clear();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    names_ << runs[i].name;
    for (const auto& [phase, time] : phase_times(*runs[i].steps)) {
      auto row = std::ranges::find(rows_, phase, &Row::phase);
      if (row == rows_.end()) {
        const auto behind = std::ranges::find_if(
            rows_, [&](const Row& other) { return placeOf(other.phase) > placeOf(phase); });
        row = rows_.insert(behind, {phase, std::vector<PhaseTime>(runs.size())});
      }
      row->times[i] = time;
    }
  }
  endResetModel();
}

int RunPhasesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RunPhasesModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || names_.isEmpty() ? 0 : 3 * runs();
}

RunPhasesModel::Column RunPhasesModel::columnAt(int section) {
  using What = Column::What;
  if (section == 0) return {};
  if (section <= 2) return {0, section == 1 ? What::mean : What::deviation};
  static constexpr What kOfOthers[] = {What::mean, What::deviation, What::difference};
  return {section / 3, kOfOthers[section % 3]};
}

// "save_checkpoint, in 1 of 200 steps", of several runs with their names.
QString RunPhasesModel::named(const Row& row) const {
  QStringList parts{QString::fromStdString(row.phase)};
  for (int run = 0; run < runs(); ++run) {
    const QString some = said(row.times[static_cast<std::size_t>(run)].in_some());
    if (some.isEmpty()) continue;
    parts << (runs() == 1 ? some : Words::tr("%1: %2").arg(names_[run], some));
  }
  return parts.join(", ");
}

QVariant RunPhasesModel::number(const Row& row, const Column& column) const {
  if (column.run < 0) return {};
  const MeasuredMean& own = row.times[static_cast<std::size_t>(column.run)].seconds;
  const MeasuredMean& first = row.times[0].seconds;
  if (own.mean <= 0) return {};
  switch (column.what) {
    case Column::What::mean:
      return own.mean;
    case Column::What::deviation:
      return own.deviation;
    case Column::What::difference:
      break;
  }
  return first.mean > 0 ? QVariant(100 * (own.mean / first.mean - 1)) : QVariant();
}

QVariant RunPhasesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  const Column column = columnAt(index.column());
  switch (role) {
    case kNumberRole:
      return number(row, column);
    case Qt::TextAlignmentRole:
      return QVariant((column.run < 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::FontRole: {
      QFont font;
      font.setBold(row.phase == kStep);
      return font;
    }
    case Qt::DecorationRole:
      if (const auto phase = phase_from(row.phase); phase && column.run < 0)
        return colourOf(*phase);
      return {};
    case Qt::DisplayRole:
      break;
    default:
      return {};
  }
  if (column.run < 0) return named(row);
  const QVariant value = number(row, column);
  if (!value.isValid()) return "-";
  if (column.what != Column::What::difference) return secondsText(value.toDouble());
  return QString("%1%2 %").arg(value.toDouble() >= 0 ? "+" : "").arg(value.toDouble(), 0, 'f', 1);
}

QVariant RunPhasesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  const bool number = role == kNumberRole;
  if (orientation == Qt::Vertical)
    return role == Qt::DisplayRole ? QVariant(section + 1) : QVariant();
  const Column column = columnAt(section);
  if (role == Qt::ToolTipRole && column.what == Column::What::deviation) {
    return Words::tr("One standard deviation of the mean over the measured steps");
  }
  if ((role != Qt::DisplayRole && !number) || (number && column.run < 0)) return {};
  if (column.run < 0) return Words::tr("Phase");
  const QString name = names_.value(column.run);
  switch (column.what) {
    case Column::What::mean:
      return number ? name + ", s" : name;
    case Column::What::deviation:
      return number ? name + " +-, s" : QString("+-");
    case Column::What::difference:
      break;
  }
  const QString against = Words::tr("Against %1").arg(names_.value(0));
  return number ? name + ": " + against + ", %" : against;
}

}  // namespace tessera::gui
