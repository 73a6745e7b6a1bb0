// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/span_totals_model.h"

#include <algorithm>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/timeline/span_text.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

constexpr double kNs = 1e-9;

}  // namespace

void SpanTotalsModel::setTotals(std::vector<SpanTotal> totals, const IdleTotal& idle,
                                std::int64_t area_ns, bool phases) {
  beginResetModel();
  phases_ = phases;
  totals_ = std::move(totals);
  area_ns_ = area_ns;
  idle_row_ = -1;
  if (area_ns > 0) {
    const auto shorter = std::find_if(totals_.begin(), totals_.end(),
                                      [&](const SpanTotal& one) { return one.busy_ns < idle.ns; });
    idle_row_ = static_cast<int>(shorter - totals_.begin());
    totals_.insert(shorter, {.name = "idle", .count = idle.gaps, .busy_ns = idle.ns});
  }
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
  const bool idle = index.row() == idle_row_;
  if (role == PhaseRole)
    return idle || !phases_ ? QVariant() : QVariant(static_cast<int>(row.phase));
  if (role == Qt::TextAlignmentRole) {
    return QVariant((index.column() >= Count ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role == Qt::ToolTipRole && idle) {
    return Words::tr("Time in which no line of a rank has a span; click a gap to see why.");
  }
  if (role == Qt::ToolTipRole && phases_) {
    const QString meaning = meaningText(row.name);
    return meaning.isEmpty() ? QVariant() : QVariant(meaning);
  }
  if (role != Qt::DisplayRole && role != SortRole) return {};
  switch (index.column()) {
    case Name:
      return idle ? Words::tr("idle") : QString::fromStdString(row.name);
    case PhaseName:
      return idle || !phases_ ? QString() : toText(name_of(row.phase));
    case StreamName:
      return idle || !phases_ ? QString() : said(name_of(row.stream));
    default:
      return number(index.column(), row, role == SortRole);
  }
}

QVariant SpanTotalsModel::number(int column, const SpanTotal& row, bool sorts) const {
  const double total = static_cast<double>(row.busy_ns) * kNs;
  const double mean = row.count > 0 ? total / static_cast<double>(row.count) : 0;
  const double share =
      area_ns_ > 0 ? static_cast<double>(row.busy_ns) / static_cast<double>(area_ns_) : 0;
  const double communicates = static_cast<double>(row.communication_ns) * kNs;
  switch (column) {
    case Count:
      return sorts ? QVariant(static_cast<qlonglong>(row.count))
                   : QVariant(countText(static_cast<double>(row.count)));
    case Total:
      return sorts ? QVariant(total) : QVariant(secondsText(total));
    case Mean:
      return sorts ? QVariant(mean) : QVariant(secondsText(mean));
    case Share:
      return sorts ? QVariant(share) : QVariant(QString("%1 %").arg(100 * share, 0, 'f', 1));
    default:
      if (sorts) return communicates;
      return row.communication_ns > 0 ? secondsText(communicates) : QString();
  }
}

QVariant SpanTotalsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Name"),        QT_TRANSLATE_NOOP("Words", "Phase"),
      QT_TRANSLATE_NOOP("Words", "Stream"),      QT_TRANSLATE_NOOP("Words", "Count"),
      QT_TRANSLATE_NOOP("Words", "Total"),       QT_TRANSLATE_NOOP("Words", "Mean"),
      QT_TRANSLATE_NOOP("Words", "Of the time"), QT_TRANSLATE_NOOP("Words", "Communicates")};
  if (role == Qt::ToolTipRole && orientation == Qt::Horizontal && section == Communicates) {
    return Words::tr(
        "Part of the total in which ranks exchange within layers: tensor, context and expert "
        "parallelism");
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
