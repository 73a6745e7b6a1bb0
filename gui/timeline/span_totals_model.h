// SPDX-License-Identifier: GPL-3.0-or-later
// What the spans of an area add up to, a row for each name, phase and stream, and one for the time
// in which its ranks are idle. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "gui/timeline/lane_gap.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

class SpanTotalsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns {
    Name,
    PhaseName,
    StreamName,
    Count,
    Total,
    Mean,
    Share,
    Communicates,
    ColumnCount
  };
  /// PhaseRole: int, of enum Phase; none for idle time, and where there are no phases.
  enum Roles { SortRole = Qt::UserRole, PhaseRole };

  using QAbstractTableModel::QAbstractTableModel;

  /// `area_ns`: of all its ranks together, what shares are of. `phases`: the totals have phases and
  /// streams, as those of an opened trace need not.
  void setTotals(std::vector<SpanTotal> totals, const IdleTotal& idle, std::int64_t area_ns,
                 bool phases = true);
  /// With idle time as a row that has the name "idle".
  const std::vector<SpanTotal>& totals() const { return totals_; }
  int idleRow() const { return idle_row_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant number(int column, const SpanTotal& row, bool sorts) const;

  std::vector<SpanTotal> totals_;
  int idle_row_ = -1;  // where idle time stands among the totals; -1: nowhere
  std::int64_t area_ns_ = 0;
  bool phases_ = true;
};

}  // namespace tessera::gui
