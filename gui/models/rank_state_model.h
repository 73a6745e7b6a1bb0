// SPDX-License-Identifier: GPL-3.0-or-later
// What every rank of a run is doing: its phase and step, and whether it still lives; the worst
// first. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "cost_models/spec/workload.h"
#include "gui/models/mesh_model.h"
#include "gui/models/run_state.h"
#include "simulator/timeline/rank_status.h"

namespace tessera::gui {

class RankStateModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Rank, State, Phase, Step, Since, Pid, ColumnCount };
  enum Roles { BadRole = Qt::UserRole + 1 };  // bool: lost, failed, stalled, or nothing is known

  struct Row {
    RankStatus status;
    Life life = Life::gone;
    QString fault = {};    // why nothing else is known of it; empty = the rest is
    bool stalled = false;  // the others wait for it, and nothing moves
  };

  using QAbstractTableModel::QAbstractTableModel;

  /// Rows of ranks that stay are updated in place. `now_ns`: system clock since 1970. Those that
  /// were lost or failed come first, then one that stalls, then those that run, the earliest step
  /// first, then the others.
  void setStates(std::vector<Row> rows, std::int64_t now_ns);
  const std::vector<Row>& rows() const { return rows_; }
  /// Of those that have not ended: seen here, or not to be judged from here.
  int running() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QString sinceText(const Row& row) const;
  double seconds(const Row& row) const;  // in its phase, or until it ended

  std::vector<Row> rows_;
  std::int64_t now_ns_ = 0;
};

/// "running", "paused", "finished (0)", "terminated", "on another host", "stalled", "lost" of a
/// rank that stopped without a word, or why nothing is known of it.
QString stateText(const RankStateModel::Row& row);

/// What every rank of a plan does in a run; empty where the run has other ranks than the plan.
std::vector<RankNow> ranks_now(const std::vector<RankStateModel::Row>& rows, int ranks);

}  // namespace tessera::gui
