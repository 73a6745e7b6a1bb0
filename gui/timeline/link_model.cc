// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/link_model.h"

#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"

namespace tessera::gui {

void LinkModel::setLinks(LinkSteps steps) {
  beginResetModel();
  steps_ = std::move(steps);
  moment_.reset();
  endResetModel();
}

void LinkModel::setMoment(std::optional<double> ns) {
  if (moment_ == ns) return;
  moment_ = ns;
  if (rowCount() > 0) emit dataChanged(index(0, Then), index(rowCount() - 1, Then));
}

int LinkModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(steps_.lanes.size());
}

int LinkModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

// Counts, bytes, shares; of texts what orders them.
QVariant LinkModel::number(std::size_t lane, int column) const {
  const LinkLane& of = steps_.lanes[lane];
  const LinkLoad& link = of.first();
  switch (column) {
    case Link:
      return link.link;
    case Links:
      return static_cast<qlonglong>(of.links.size());
    case Kind:
      return static_cast<int>(link.kind);
    case Rate:
      return link.bytes_per_s;
    case Peak:
      return link.most_load;
    case Mean:
      return link.mean_load;
    case Busy:
      return link.busy_share;
    case Bytes:
      return static_cast<qlonglong>(link.bytes);
    default:
      return moment_ ? QVariant(load_at(steps_, lane, *moment_)) : QVariant();
  }
}

QVariant LinkModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto lane = static_cast<std::size_t>(index.row());
  const int column = index.column();
  if (role == SortRole) return number(lane, column);
  if (role == Qt::TextAlignmentRole) {
    const bool words = column == Link || column == Kind;
    return QVariant((words ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole) return {};
  const LinkLoad& link = steps_.lanes[lane].first();
  const QVariant value = number(lane, column);
  if (!value.isValid()) return {};
  switch (column) {
    case Link:
      return said(link.name);
    case Links:
      return countText(value.toDouble());
    case Kind:
      return kindText(link.kind);
    case Rate:
      return rateText(link.bytes_per_s);
    case Bytes:
      return bytesText(link.bytes);
    default:
      return QString("%1 %").arg(100 * value.toDouble(), 0, 'f', 1);
  }
}

QVariant LinkModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Link"),     QT_TRANSLATE_NOOP("Words", "Alike"),
      QT_TRANSLATE_NOOP("Words", "Kind"),     QT_TRANSLATE_NOOP("Words", "Carries"),
      QT_TRANSLATE_NOOP("Words", "Peak"),     QT_TRANSLATE_NOOP("Words", "Mean"),
      QT_TRANSLATE_NOOP("Words", "In use"),   QT_TRANSLATE_NOOP("Words", "Bytes"),
      QT_TRANSLATE_NOOP("Words", "Load then")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section >= 0 && section < ColumnCount ? QVariant(Words::tr(kNames[section])) : QVariant();
}

}  // namespace tessera::gui
