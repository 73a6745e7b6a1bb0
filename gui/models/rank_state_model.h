// SPDX-License-Identifier: GPL-3.0-or-later
// What every rank of a run is doing: its phase and step, and whether its process still lives.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "cost_models/spec/workload.h"
#include "simulator/timeline/rank_status.h"

namespace tessera::gui {

class RankStateModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Rank, State, Phase, Step, Since, Pid, ColumnCount };

  struct Row {
    RankStatus status;
    bool alive = false;  // the process exists
  };

  using QAbstractTableModel::QAbstractTableModel;

  /// Rows of ranks that stay are updated in place. `now_ns`: system clock since 1970.
  void setStates(std::vector<Row> rows, std::int64_t now_ns);
  const std::vector<Row>& rows() const { return rows_; }
  int running() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  std::vector<Row> rows_;
  std::int64_t now_ns_ = 0;
};

/// "running", "finished (0)", "terminated", or "died" of a rank that stopped without a word.
QString stateText(const RankStateModel::Row& row);

}  // namespace tessera::gui
