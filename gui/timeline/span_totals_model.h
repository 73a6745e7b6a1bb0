// SPDX-License-Identifier: GPL-3.0-or-later
// What the spans of an area add up to, a row for each name, phase and stream. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

class SpanTotalsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Name, PhaseName, StreamName, Count, Total, Mean, Share, ColumnCount };
  enum Roles { SortRole = Qt::UserRole, PhaseRole };  // PhaseRole: int, of enum Phase

  using QAbstractTableModel::QAbstractTableModel;

  /// `area_ns`: of all its ranks together, what shares are of.
  void setTotals(std::vector<SpanTotal> totals, std::int64_t area_ns);
  const std::vector<SpanTotal>& totals() const { return totals_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  std::vector<SpanTotal> totals_;
  std::int64_t area_ns_ = 0;
};

}  // namespace tessera::gui
