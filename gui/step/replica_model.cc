// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step/replica_model.h"

#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/timeline/span_text.h"

namespace tessera::gui {

void ReplicaModel::setRollout(RolloutSteps steps) {
  beginResetModel();
  steps_ = std::move(steps);
  moment_.reset();
  endResetModel();
}

void ReplicaModel::setMoment(std::optional<double> ns) {
  if (moment_ == ns) return;
  moment_ = ns;
  if (rowCount() > 0) emit dataChanged(index(0, Active), index(rowCount() - 1, Ended));
}

int ReplicaModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(steps_.replicas.size());
}

int ReplicaModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

// A count, or seconds; of the ranks the first.
QVariant ReplicaModel::number(std::size_t replica, int column) const {
  const ReplicaSteps& of = steps_.replicas[replica];
  const auto seconds = [&](std::int64_t ns) {
    return static_cast<double>(steps_.since(ns)) * 1e-9;
  };
  switch (column) {
    case Ranks:
      return of.rollout->ranks.front();
    case Sequences:
      return static_cast<qlonglong>(of.tail.sequences);
    case Active:
    case Ended: {
      if (!moment_) return {};
      const ActiveSample at = active_at(steps_, replica, *moment_);
      return static_cast<qlonglong>(column == Active ? at.active : at.ended);
    }
    case Half:
      return seconds(of.tail.half_ns);
    default:
      return seconds(of.tail.end_ns);
  }
}

QVariant ReplicaModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto replica = static_cast<std::size_t>(index.row());
  if (role == SortRole) return number(replica, index.column());
  if (role == Qt::TextAlignmentRole) {
    return QVariant((index.column() == Ranks ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole) return {};
  const QVariant value = number(replica, index.column());
  if (index.column() == Ranks) {
    return ranksText(RankGroup{steps_.replicas[replica].rollout->ranks});
  }
  if (!value.isValid()) return {};
  return index.column() >= Half ? secondsText(value.toDouble()) : countText(value.toDouble());
}

QVariant ReplicaModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Replica"),     QT_TRANSLATE_NOOP("Words", "Sequences"),
      QT_TRANSLATE_NOOP("Words", "Active then"), QT_TRANSLATE_NOOP("Words", "Ended then"),
      QT_TRANSLATE_NOOP("Words", "Half after"),  QT_TRANSLATE_NOOP("Words", "All after")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
