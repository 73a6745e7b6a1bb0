// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/rank_state_model.h"

#include <QColor>
#include <algorithm>

#include "cost_models/spec/workload.h"
#include "gui/models/colours.h"
#include "gui/models/text.h"

namespace tessera::gui {

QString stateText(const RankStateModel::Row& row) {
  switch (row.status.state) {
    case RankState::finished:
      return QString("finished (%1)").arg(row.status.exit_code);
    case RankState::terminated:
      return "terminated";
    default:
      return row.alive ? "running" : "died";
  }
}

void RankStateModel::setStates(std::vector<Row> rows, std::int64_t now_ns) {
  now_ns_ = now_ns;
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
    return row.alive && row.status.state == RankState::running;
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
  if (role == Qt::ForegroundRole && index.column() == State) {
    const bool bad = stateText(row) == "died" || status.exit_code != 0;
    return bad ? QVariant(QColor(Qt::red)) : QVariant();
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Rank:
      return status.rank;
    case State:
      return stateText(row);
    case Phase:
      return QString::fromStdString(status.phase);
    case Step:
      return QVariant::fromValue<qint64>(status.step);
    case Since: {
      const std::int64_t until = status.ended_ns > 0 ? status.ended_ns : now_ns_;
      return secondsText(
          static_cast<double>(std::max<std::int64_t>(0, until - status.phase_since_ns)) * 1e-9);
    }
    default:
      return status.pid;
  }
}

QVariant RankStateModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {"Rank", "State", "Phase", "Step", "In phase", "Process"};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section;
  return section < ColumnCount ? QString(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
