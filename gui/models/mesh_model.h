// SPDX-License-Identifier: GPL-3.0-or-later
// The ranks of a plan as a grid: a row per node, a column per GPU of the node.
//
// Cells are coloured by the roles on a rank, or by the groups of one role along one axis: ranks of
// one colour form one group, except along "model" where one colour is one replica. Peers are the
// ranks of a chosen rank's group. Or by what others worked out for every rank: its memory at the
// peak, the load of its busiest link, its phase in a run.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/workload.h"
#include "gui/document/shared_plan.h"
#include "gui/models/colours.h"
#include "gui/timeline/rank_link.h"

namespace tessera {
struct Calibration;
}

namespace tessera::gui {

enum class MeshBy { groups, memory, load, phase };

/// What the colours of the mesh mean; by groups without a role: which roles share a rank.
struct MeshColouring {
  std::optional<Role> role;
  Axis axis = Axis::tp;
  MeshBy by = MeshBy::groups;
  bool operator==(const MeshColouring&) const = default;
};

/// What the planner counts for a rank at its peak, of what plans may use; bytes, 0 without a role.
struct RankMemory {
  std::int64_t peak = 0, limit = 0;
};

/// A rank as its heartbeats have it.
struct RankNow {
  std::optional<Phase> phase;  // that it works on; none once it has ended
  bool bad = false;            // lost or failed
  QString text;                // "update_actor of step 3"; "lost"
  bool operator==(const RankNow&) const = default;
};

class MeshModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Roles {
    RankRole = Qt::UserRole,  // int, -1 outside the plan
    RoleColoursRole,          // QVariantList of QColor: the roles on the rank
    GroupRole,                // int, -1 where the colouring's role is absent
    CoordinateRole,           // QString: "tp1 pp0 dp2"
    PeerRole,                 // bool: in the group of the chosen rank
  };

  using QAbstractTableModel::QAbstractTableModel;

  void setPlan(SharedPlan plan);
  void setColouring(const MeshColouring& colouring);
  /// What is known of every rank of the plan; empty: nothing. Another plan forgets them.
  void setMemory(std::vector<RankMemory> memory);
  void setLinks(std::vector<RankLink> links);
  void setNow(std::vector<RankNow> now);
  /// -1 = none.
  void setChosenRank(int rank);

  const MeshColouring& colouring() const { return colouring_; }
  int chosenRank() const { return chosen_; }
  int groupCount() const { return static_cast<int>(groups_.size()); }
  /// Roles of the plan, in its order.
  std::vector<Role> roles() const;
  /// Ranks of the plan, and GPUs of its cluster, those behind them idle.
  int planRanks() const { return plan_ranks_; }
  /// Of every GPU below ranks(): what is on it, its colour, "tp1 pp0 dp2" (or that it is idle),
  /// and all that is known of it, in lines.
  int ranks() const { return gpus_; }
  const std::vector<Role>& rolesOn(int rank) const {
    return roles_on_[static_cast<std::size_t>(rank)];
  }
  QColor colour(int rank, Theme theme = Theme::light) const;
  /// What the colours are of is known.
  bool hasColours() const;
  /// The amount that the strongest colour stands for, of the limit or of what a link carries.
  double most() const;
  const std::vector<RankNow>& now() const { return now_; }
  QString coordinate(int rank) const;
  QString describe(int rank) const;
  /// The group of GPUs of one type that has the rank; -1 where all are alike.
  int typeOf(int rank) const;
  int typeCount() const;
  QString typeName(int type) const;
  /// That share a leaf switch; 1 = the cluster states no such leaves.
  int nodesPerLeaf() const;
  /// The types of ranks in [first, end): "H800, H20".
  QString typesText(int first, int end) const;
  /// Of the chosen rank's group, with itself; empty where none is chosen.
  std::vector<int> peers() const;
  QModelIndex indexOf(int rank) const;
  int rankAt(const QModelIndex& index) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  template <class Known>
  std::vector<Known> ofAll(std::vector<Known> known) const;
  void group();
  void recoloured(MeshBy by);
  double share(int rank) const;
  QString measured(int rank) const;
  bool isPeer(int rank) const;

  SharedPlan plan_;
  int plan_ranks_ = 0, gpus_ = 0;
  std::map<Role, RankMap> maps_;
  std::vector<std::vector<Role>> roles_on_;  // by rank
  MeshColouring colouring_;
  std::vector<std::vector<int>> groups_;
  std::vector<int> group_of_;  // by rank, -1 = none
  std::vector<QColor> group_colours_;
  std::vector<RankMemory> memory_;
  std::vector<RankLink> links_;
  double most_load_ = 0;
  std::vector<RankNow> now_;
  int chosen_ = -1;
};

/// "tp", "pp", "dp", "model".
QString axisName(Axis axis);

/// Of a rank that has no phase: idle or ended, and lost or failed.
QColor colourOfIdle();
QColor colourOfBad();

/// What the planner counts for every rank; throws Error where a layout is impossible, or Stopped.
std::vector<RankMemory> memory_of_ranks(const Plan& plan, const Calibration& calibration,
                                        const std::stop_token& stop);

}  // namespace tessera::gui
