// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/rank_state_model.h"

#include <QDateTime>
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/workload.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/units/number_role.h"
#include "simulator/run_end/end_cause.h"

namespace tessera::gui {
namespace {

constexpr std::string_view kPaused = "paused";  // a phase

bool isBad(const RankStateModel::Row& row) {
  if (!row.fault.isEmpty()) return true;
  if (row.status.state != RankState::running) return ended_by_error(row.status);
  return row.life == Life::gone || row.life == Life::silent;
}

bool lives(const RankStateModel::Row& row) {
  return row.life == Life::here || row.life == Life::beating;
}

// Ranks that are equally well stay in the order of their numbers.
bool isWorse(const RankStateModel::Row& a, const RankStateModel::Row& b) {
  const auto place = [](const RankStateModel::Row& row) {
    const bool runs = row.status.state == RankState::running;
    const int part = isBad(row) ? 0 : row.stalled ? 1 : runs ? 2 : 3;
    return std::tuple(part, part == 2 ? row.status.step : 0, row.status.rank);
  };
  return place(a) < place(b);
}

QString endText(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::ok:
      return Words::tr("finished (%1)").arg(code);
    case ExitCode::stopped:
    case ExitCode::requeue:
      return Words::tr("stopped (%1)").arg(code);
    default:
      return Words::tr("failed (%1)").arg(code);
  }
}

}  // namespace

QString stateText(const RankStateModel::Row& row) {
  if (!row.fault.isEmpty()) return row.fault;
  switch (row.status.state) {
    case RankState::finished:
      return endText(row.status.exit_code);
    case RankState::terminated:
      return Words::tr("terminated");
    default:
      return row.stalled                                 ? Words::tr("stalled")
             : lives(row) && row.status.phase == kPaused ? Words::tr("paused")
             : lives(row)                                ? Words::tr("running")
             : row.life == Life::silent                  ? Words::tr("no heartbeat")
             : row.life == Life::gone                    ? Words::tr("lost")
                                                         : Words::tr("on another host");
  }
}

void RankStateModel::setStates(std::vector<Row> rows, std::int64_t now_ns) {
  now_ns_ = now_ns;
  std::stable_sort(rows.begin(), rows.end(), isWorse);
  if (rows.size() != rows_.size()) {
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
    return;
  }
  rows_ = std::move(rows);
  if (!rows_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int RankStateModel::running() const {
  return static_cast<int>(std::count_if(rows_.begin(), rows_.end(), [](const Row& row) {
    return row.fault.isEmpty() && row.life != Life::gone && row.life != Life::silent &&
           row.status.state == RankState::running;
  }));
}

int RankStateModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RankStateModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant RankStateModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  const RankStatus& status = row.status;
  if (role == Qt::DecorationRole && index.column() == Phase) {
    const auto phase = phase_from(status.phase);
    return phase ? QVariant(colourOf(*phase)) : QVariant();
  }
  if (role == BadRole && index.column() == State) return isBad(row) || row.stalled;
  if (role != Qt::DisplayRole && role != kNumberRole) return {};
  if (!row.fault.isEmpty() && index.column() > State) return {};
  if (role == kNumberRole) return index.column() == Since ? QVariant(seconds(row)) : QVariant();
  switch (index.column()) {
    case Rank:
      return status.rank;
    case State:
      return stateText(row);
    case Phase:
      return QString::fromStdString(status.phase);
    case Step:
      return QVariant::fromValue<qint64>(status.step);
    case Since:
      return sinceText(row);
    default:
      return status.pid;
  }
}

// The clock of a lost rank stands: when it ended nobody knows, when its phase began it wrote.
QString RankStateModel::sinceText(const Row& row) const {
  const RankStatus& status = row.status;
  const bool lost = status.state == RankState::running && row.life == Life::gone;
  if (lost) {
    const auto began = QDateTime::fromMSecsSinceEpoch(status.phase_since_ns / 1'000'000);
    return Words::tr("since %1").arg(began.toString("HH:mm:ss"));
  }
  return secondsText(seconds(row));
}

double RankStateModel::seconds(const Row& row) const {
  const RankStatus& status = row.status;
  const std::int64_t until = status.ended_ns > 0 ? status.ended_ns : now_ns_;
  return static_cast<double>(std::max<std::int64_t>(0, until - status.phase_since_ns)) * 1e-9;
}

QVariant RankStateModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Rank"),     QT_TRANSLATE_NOOP("Words", "State"),
      QT_TRANSLATE_NOOP("Words", "Phase"),    QT_TRANSLATE_NOOP("Words", "Step"),
      QT_TRANSLATE_NOOP("Words", "In phase"), QT_TRANSLATE_NOOP("Words", "Process")};
  if (role == kNumberRole && orientation == Qt::Horizontal && section == Since) {
    return Words::tr(kNames[section]) + ", s";
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

std::vector<RankNow> ranks_now(const std::vector<RankStateModel::Row>& rows, int ranks) {
  std::vector<RankNow> now(static_cast<std::size_t>(ranks));
  if (static_cast<int>(rows.size()) != ranks) return {};
  for (const RankStateModel::Row& row : rows) {
    const RankStatus& status = row.status;
    if (status.rank < 0 || status.rank >= ranks) return {};
    RankNow& rank = now[static_cast<std::size_t>(status.rank)];
    const bool runs = status.state == RankState::running;
    rank.bad = isBad(row);
    if (runs && !rank.bad) rank.phase = phase_from(status.phase);
    rank.text =
        !runs || rank.bad ? stateText(row)
        : status.phase == kPaused
            ? Words::tr("paused after step %1").arg(status.step)
            : Words::tr("%1 of step %2").arg(QString::fromStdString(status.phase)).arg(status.step);
  }
  return now;
}

}  // namespace tessera::gui
