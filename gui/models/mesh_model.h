// SPDX-License-Identifier: GPL-3.0-or-later
// The ranks of a plan as a grid: a row per node, a column per GPU of the node.
//
// Cells are coloured by the roles on a rank, or by the groups of one role along one axis: ranks of
// one colour form one group, except along "model" where one colour is one replica. Peers are the
// ranks of a chosen rank's group.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <map>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"

namespace tessera::gui {

/// What the colours of the mesh mean; without a role, which roles share a rank.
struct MeshColouring {
  std::optional<Role> role;
  Axis axis = Axis::tp;
  bool operator==(const MeshColouring&) const = default;
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

  void setPlan(const Plan& plan);
  void setColouring(const MeshColouring& colouring);
  /// -1 = none.
  void setChosenRank(int rank);

  const MeshColouring& colouring() const { return colouring_; }
  int chosenRank() const { return chosen_; }
  int groupCount() const { return static_cast<int>(groups_.size()); }
  /// Roles of the plan, in its order.
  std::vector<Role> roles() const;
  /// Of every rank below ranks(): what is on it, its colour, "tp1 pp0 dp2" (or that it is idle),
  /// and all that is known of it, in lines.
  int ranks() const { return world_size_; }
  const std::vector<Role>& rolesOn(int rank) const {
    return roles_on_[static_cast<std::size_t>(rank)];
  }
  QColor colour(int rank) const;
  QString coordinate(int rank) const;
  QString describe(int rank) const;
  /// The group of GPUs of one type that has the rank; -1 where all are alike.
  int typeOf(int rank) const;
  int typeCount() const { return static_cast<int>(plan_.cluster.groups.size()); }
  QString typeName(int type) const;
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
  void group();
  bool isPeer(int rank) const;

  Plan plan_;
  int world_size_ = 0;
  std::map<Role, RankMap> maps_;
  std::vector<std::vector<Role>> roles_on_;  // by rank
  MeshColouring colouring_;
  std::vector<std::vector<int>> groups_;
  std::vector<int> group_of_;  // by rank, -1 = none
  int chosen_ = -1;
};

/// "tp", "pp", "dp", "model".
QString axisName(Axis axis);

}  // namespace tessera::gui
