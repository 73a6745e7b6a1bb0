// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/span_totals_model.h"

#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

constexpr double kNs = 1e-9;

}  // namespace

void SpanTotalsModel::setTotals(std::vector<SpanTotal> totals, std::int64_t area_ns) {
  beginResetModel();
  totals_ = std::move(totals);
  area_ns_ = area_ns;
  endResetModel();
}

int SpanTotalsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(totals_.size());
}

int SpanTotalsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant SpanTotalsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const SpanTotal& row = totals_[static_cast<std::size_t>(index.row())];
  if (role == PhaseRole) return static_cast<int>(row.phase);
  if (role == Qt::TextAlignmentRole) {
    return QVariant((index.column() >= Count ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole && role != SortRole) return {};
  const bool sorts = role == SortRole;
  const double total = static_cast<double>(row.busy_ns) * kNs;
  const double mean = total / static_cast<double>(row.count);
  const double share =
      area_ns_ > 0 ? static_cast<double>(row.busy_ns) / static_cast<double>(area_ns_) : 0;
  switch (index.column()) {
    case Name:
      return QString::fromStdString(row.name);
    case PhaseName:
      return toText(name_of(row.phase));
    case StreamName:
      return said(name_of(row.stream));
    case Count:
      return sorts ? QVariant(static_cast<qlonglong>(row.count))
                   : QVariant(countText(static_cast<double>(row.count)));
    case Total:
      return sorts ? QVariant(total) : QVariant(secondsText(total));
    case Mean:
      return sorts ? QVariant(mean) : QVariant(secondsText(mean));
    default:
      return sorts ? QVariant(share) : QVariant(QString("%1 %").arg(100 * share, 0, 'f', 1));
  }
}

QVariant SpanTotalsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Name"),       QT_TRANSLATE_NOOP("Words", "Phase"),
      QT_TRANSLATE_NOOP("Words", "Stream"),     QT_TRANSLATE_NOOP("Words", "Count"),
      QT_TRANSLATE_NOOP("Words", "Total"),      QT_TRANSLATE_NOOP("Words", "Mean"),
      QT_TRANSLATE_NOOP("Words", "Of the time")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
