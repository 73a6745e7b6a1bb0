// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step/memory_moment_model.h"

#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/step/memory_text.h"

namespace tessera::gui {

void MemoryMomentModel::setMoment(const MemorySteps& steps, const MemoryLimits& limits,
                                  std::size_t sample) {
  const auto now = memory_classes(steps.samples[sample].use);
  const auto peak = memory_classes(steps.samples[steps.peak].use);
  std::vector<Row> rows;
  for (auto at = steps.classes.rbegin(); at != steps.classes.rend(); ++at) {
    rows.push_back(
        {className(*at), classColour(*at), now[*at].second.value, peak[*at].second.value});
  }
  const std::int64_t all = steps.total(sample), most = steps.total(steps.peak);
  rows.push_back({Words::tr("all"), {}, all, most});
  if (limits.usable > 0) {
    rows.push_back({Words::tr("left"), {}, limits.usable - all, limits.usable - most, true});
  }
  setRows(std::move(rows));
}

void MemoryMomentModel::clear() { setRows({}); }

// The cursor moves often, the classes seldom change: what is selected stays then.
void MemoryMomentModel::setRows(std::vector<Row> rows) {
  if (rows == rows_) return;
  if (rows.size() == rows_.size() && !rows.empty()) {
    rows_ = std::move(rows);
    emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
    return;
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

int MemoryMomentModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int MemoryMomentModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant MemoryMomentModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  const std::int64_t bytes = index.column() == AtPeak ? row.peak : row.now;
  switch (role) {
    case Qt::DisplayRole:
      if (index.column() == Name) return row.name;
      return bytes < 0 ? "-" + bytesText(-bytes) : bytesText(bytes);
    case BytesRole:
      return index.column() == Name ? QVariant() : QVariant::fromValue<qint64>(bytes);
    case Qt::DecorationRole:
      return index.column() == Name && row.colour.isValid() ? QVariant(row.colour) : QVariant();
    case BadRole:
      return row.left && index.column() != Name && bytes < 0;
    case Qt::TextAlignmentRole:
      return QVariant((index.column() == Name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant MemoryMomentModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {QT_TRANSLATE_NOOP("Words", "Class"),
                                           QT_TRANSLATE_NOOP("Words", "Then"),
                                           QT_TRANSLATE_NOOP("Words", "At the peak")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
