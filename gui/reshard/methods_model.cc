// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/reshard/methods_model.h"

#include <limits>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

QString textOf(const MethodCost& row, int column) {
  switch (column) {
    case MethodsModel::Method:
      return toText(name_of(row.method));
    case MethodsModel::Received:
      return bytesText(row.received.value);
    case MethodsModel::Sent:
      return bytesText(row.sent.value);
    case MethodsModel::Redundant:
      return bytesText(row.redundant.value);
    case MethodsModel::Peak:
      return bytesText(row.peak.value);
    case MethodsModel::Wire:
      return secondsText(row.wire.value);
    case MethodsModel::Software:
      return secondsText(row.software.value);
    case MethodsModel::Total:
      return secondsText(row.total.value);
    default:
      return said(row.overlap) + (row.fits ? "" : Words::tr("; does not fit"));
  }
}

// Methods that cannot be used come last.
QVariant sortKey(const MethodCost& row, int column) {
  if (column != MethodsModel::Method && !row.unusable.empty()) {
    return std::numeric_limits<double>::max();
  }
  switch (column) {
    case MethodsModel::Received:
      return static_cast<double>(row.received.value);
    case MethodsModel::Sent:
      return static_cast<double>(row.sent.value);
    case MethodsModel::Redundant:
      return static_cast<double>(row.redundant.value);
    case MethodsModel::Peak:
      return static_cast<double>(row.peak.value);
    case MethodsModel::Wire:
      return row.wire.value;
    case MethodsModel::Software:
      return row.software.value;
    case MethodsModel::Total:
      return row.total.value;
    default:
      return textOf(row, column);
  }
}

}  // namespace

void MethodsModel::setMethods(std::vector<MethodCost> methods, std::optional<ReshardMethod> used) {
  beginResetModel();
  used_ = used;
  methods_ = std::move(methods);
  endResetModel();
}

int MethodsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(methods_.size());
}

int MethodsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant MethodsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const MethodCost& row = methods_[static_cast<std::size_t>(index.row())];
  const bool usable = row.unusable.empty();
  const bool number = index.column() > Method && index.column() < Meanwhile;
  switch (role) {
    case Qt::DisplayRole:
      if (index.column() == Method && row.method == used_) {
        return Words::tr("%1 (this plan)").arg(textOf(row, Method));
      }
      if (usable || index.column() == Method) return textOf(row, index.column());
      return index.column() == Meanwhile ? said(row.unusable) : QString("-");
    case Qt::ToolTipRole:
      return said(meaning_of(row.method));
    case Qt::TextAlignmentRole:
      return QVariant((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case UsedRole:
      return row.method == used_;
    case SortRole:
      return sortKey(row, index.column());
    case BadRole:
      return usable && !row.fits;
    default:
      return {};
  }
}

QVariant MethodsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Method"),   QT_TRANSLATE_NOOP("Words", "Received"),
      QT_TRANSLATE_NOOP("Words", "Sent"),     QT_TRANSLATE_NOOP("Words", "Redundant"),
      QT_TRANSLATE_NOOP("Words", "Peak"),     QT_TRANSLATE_NOOP("Words", "Wire"),
      QT_TRANSLATE_NOOP("Words", "Software"), QT_TRANSLATE_NOOP("Words", "Total"),
      QT_TRANSLATE_NOOP("Words", "Meanwhile")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
