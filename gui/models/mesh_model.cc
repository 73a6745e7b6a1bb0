// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/mesh_model.h"

#include <algorithm>

#include "cost_models/spec/node_groups.h"
#include "gui/document/text.h"
#include "gui/models/colours.h"

namespace tessera::gui {
namespace {

/// "0-3, 8": runs of ranks joined, cut after some.
QString ranksText(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  QStringList runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    runs << (last == i ? QString::number(ranks[i])
                       : QString("%1-%2").arg(ranks[i]).arg(ranks[last]));
    i = last + 1;
  }
  if (runs.size() > 10) runs = runs.mid(0, 10) << QString("... (%1 in all)").arg(ranks.size());
  return runs.join(", ");
}

QString coordinateText(const RankMap& map, int rank) {
  const int at = map.index_of(rank);
  if (at < 0) return {};
  const RankCoord& coord = map.coords[static_cast<std::size_t>(at)];
  const int dp = coord.dp_replicate * map.layout.dp_shard + coord.dp_shard;
  QString text = QString("tp%1 pp%2 dp%3").arg(coord.tp).arg(coord.pp).arg(dp);
  if (map.layout.cp > 1) text += QString(" cp%1").arg(coord.cp);
  return text;
}

QString layersText(const RankMap& map, int rank) {
  const RankCoord& coord = map.coords[static_cast<std::size_t>(map.index_of(rank))];
  QStringList ranges;
  const auto pp = static_cast<std::size_t>(map.layout.pp);
  for (auto s = static_cast<std::size_t>(coord.pp); s < map.layout.stages.size(); s += pp) {
    const LayerRange& range = map.layout.stages[s];
    ranges << QString("%1-%2").arg(range.first).arg(range.last - 1);
  }
  return ranges.join(", ");
}

}  // namespace

QString axisName(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return "tp";
    case Axis::cp:
      return "cp";
    case Axis::pp:
      return "pp";
    case Axis::model:
      return "model";
    default:
      return "dp";
  }
}

void MeshModel::setPlan(const Plan& plan) {
  beginResetModel();
  plan_ = plan;
  world_size_ = plan.world_size();
  maps_.clear();
  roles_on_.assign(static_cast<std::size_t>(world_size_), {});
  for (const RolePlan& role : plan_.roles) {
    maps_.emplace(role.role, rank_map_of(plan_, role.role));
    for (const int rank : role.ranks)
      roles_on_[static_cast<std::size_t>(rank)].push_back(role.role);
  }
  if (colouring_.role && !maps_.contains(*colouring_.role)) colouring_.role.reset();
  chosen_ = -1;
  group();
  endResetModel();
}

void MeshModel::setColouring(const MeshColouring& colouring) {
  beginResetModel();
  colouring_ = colouring;
  if (colouring_.role && !maps_.contains(*colouring_.role)) colouring_.role.reset();
  group();
  endResetModel();
}

void MeshModel::setChosenRank(int rank) {
  if (rank == chosen_) return;
  chosen_ = rank;
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

std::vector<Role> MeshModel::roles() const {
  std::vector<Role> roles;
  for (const RolePlan& role : plan_.roles) roles.push_back(role.role);
  return roles;
}

// The groups in order of their first ranks, and each rank's group.
void MeshModel::group() {
  groups_.clear();
  if (colouring_.role) {
    groups_ = groups_along(maps_.at(*colouring_.role), colouring_.axis);
  } else {
    std::map<std::vector<Role>, std::vector<int>> blocks;
    for (int rank = 0; rank < world_size_; ++rank) {
      const auto& roles = roles_on_[static_cast<std::size_t>(rank)];
      if (!roles.empty()) blocks[roles].push_back(rank);
    }
    for (auto& [roles, ranks] : blocks) groups_.push_back(std::move(ranks));
    std::sort(groups_.begin(), groups_.end());
  }
  group_of_.assign(static_cast<std::size_t>(world_size_), -1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const int rank : groups_[g]) {
      group_of_[static_cast<std::size_t>(rank)] = static_cast<int>(g);
    }
  }
}

QModelIndex MeshModel::indexOf(int rank) const {
  const int columns = columnCount();
  if (rank < 0 || rank >= world_size_ || columns == 0) return {};
  return index(rank / columns, rank % columns);
}

int MeshModel::rankAt(const QModelIndex& index) const {
  if (!index.isValid()) return -1;
  const int rank = index.row() * columnCount() + index.column();
  return rank < world_size_ ? rank : -1;
}

int MeshModel::rowCount(const QModelIndex& parent) const {
  const int columns = columnCount();
  return parent.isValid() || columns == 0 ? 0 : (world_size_ + columns - 1) / columns;
}

int MeshModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || world_size_ == 0 ? 0 : static_cast<int>(plan_.cluster.gpus_per_node);
}

QColor MeshModel::colour(int rank) const {
  const int group = group_of_[static_cast<std::size_t>(rank)];
  return group < 0 ? QColor(0xe4, 0xe4, 0xe4) : colourOfGroup(group, groupCount());
}

QString MeshModel::coordinate(int rank) const {
  if (colouring_.role) return coordinateText(maps_.at(*colouring_.role), rank);
  const auto& roles = roles_on_[static_cast<std::size_t>(rank)];
  return roles.empty() ? QString("idle") : coordinateText(maps_.at(roles.front()), rank);
}

QString MeshModel::describe(int rank) const {
  QString text = QString("<b>rank %1</b>, node %2, %3")
                     .arg(rank)
                     .arg(rank / columnCount())
                     .arg(typesText(rank, rank + 1));
  const auto& roles = roles_on_[static_cast<std::size_t>(rank)];
  if (roles.empty()) return text + "<br>not used";
  for (const Role role : roles) {
    const RankMap& map = maps_.at(role);
    text += QString("<br><b>%1</b> %2, layers %3")
                .arg(toText(name_of(role)), coordinateText(map, rank), layersText(map, rank));
    for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp}) {
      const std::vector<int> group = group_of(map, axis, rank);
      if (group.size() > 1) {
        text += QString("<br>&nbsp;&nbsp;%1 group: %2").arg(axisName(axis), ranksText(group));
      }
    }
  }
  return text;
}

int MeshModel::typeOf(int rank) const {
  return typeCount() == 0 ? -1 : tessera::group_of(plan_.cluster, rank);
}

QString MeshModel::typeName(int type) const {
  const auto& cluster = plan_.cluster;
  return toText(type < 0 ? cluster.device.name
                         : cluster.groups[static_cast<std::size_t>(type)].device.name);
}

QString MeshModel::typesText(int first, int end) const {
  if (typeCount() == 0 || first >= end) return typeName(-1);
  QStringList names;
  for (int type = typeOf(first); type <= typeOf(end - 1); ++type) names << typeName(type);
  return names.join(", ");
}

std::vector<int> MeshModel::peers() const {
  if (chosen_ < 0 || chosen_ >= world_size_) return {};
  const int group = group_of_[static_cast<std::size_t>(chosen_)];
  return group < 0 ? std::vector<int>{chosen_} : groups_[static_cast<std::size_t>(group)];
}

bool MeshModel::isPeer(int rank) const {
  if (chosen_ < 0 || chosen_ >= world_size_) return false;
  const int group = group_of_[static_cast<std::size_t>(chosen_)];
  return group >= 0 && group == group_of_[static_cast<std::size_t>(rank)];
}

QVariant MeshModel::data(const QModelIndex& index, int role) const {
  const int rank = rankAt(index);
  if (rank < 0) return role == RankRole ? QVariant(-1) : QVariant();
  switch (role) {
    case Qt::DisplayRole:
      return QString::number(rank);
    case Qt::ToolTipRole:
      return describe(rank);
    case Qt::BackgroundRole:
      return colour(rank);
    case Qt::ForegroundRole:
      return textOn(colour(rank));
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignCenter);
    case RankRole:
      return rank;
    case GroupRole:
      return group_of_[static_cast<std::size_t>(rank)];
    case CoordinateRole:
      return coordinate(rank);
    case PeerRole:
      return isPeer(rank);
    case RoleColoursRole: {
      QVariantList colours;
      for (const Role on : roles_on_[static_cast<std::size_t>(rank)]) colours << colourOf(on);
      return colours;
    }
    default:
      return {};
  }
}

QVariant MeshModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  return orientation == Qt::Vertical ? QString("node %1").arg(section)
                                     : QString("GPU %1").arg(section);
}

}  // namespace tessera::gui
