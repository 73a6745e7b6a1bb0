// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/mesh_model.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/explain/memory_account.h"
#include "planner/plan/plan.h"

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
  if (runs.size() > 10) runs = runs.mid(0, 10) << Words::tr("... (%1 in all)").arg(ranks.size());
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

QColor colourOfIdle() { return {0xe4, 0xe4, 0xe4}; }
QColor colourOfBad() { return {0xb3, 0x26, 0x1e}; }

void MeshModel::setPlan(SharedPlan plan) {
  beginResetModel();
  plan_ = std::move(plan);
  plan_ranks_ = plan_->world_size();
  gpus_ = std::max(plan_ranks_, static_cast<int>(plan_->cluster.gpus()));
  maps_.clear();
  roles_on_.assign(static_cast<std::size_t>(gpus_), {});
  for (const RolePlan& role : plan_->roles) {
    maps_.emplace(role.role, rank_map_of(*plan_, role.role));
    for (const int rank : role.ranks)
      roles_on_[static_cast<std::size_t>(rank)].push_back(role.role);
  }
  if (colouring_.role && !maps_.contains(*colouring_.role)) colouring_.role.reset();
  chosen_ = -1;
  memory_.clear();
  links_.clear();
  now_.clear();
  group();
  endResetModel();
}

int MeshModel::nodesPerLeaf() const {
  return plan_ ? static_cast<int>(plan_->cluster.nodes_per_leaf) : 1;
}

void MeshModel::setColouring(const MeshColouring& colouring) {
  beginResetModel();
  colouring_ = colouring;
  if (colouring_.role && !maps_.contains(*colouring_.role)) colouring_.role.reset();
  group();
  endResetModel();
}

// What is known of the ranks, and nothing of the GPUs behind them.
template <class Known>
std::vector<Known> MeshModel::ofAll(std::vector<Known> known) const {
  if (!known.empty()) known.resize(static_cast<std::size_t>(gpus_));
  return known;
}

void MeshModel::setMemory(std::vector<RankMemory> memory) {
  memory_ = ofAll(std::move(memory));
  recoloured(MeshBy::memory);
}

void MeshModel::setLinks(std::vector<RankLink> links) {
  links_ = ofAll(std::move(links));
  most_load_ = 0;
  for (const RankLink& link : links_) most_load_ = std::max(most_load_, link.mean_load);
  recoloured(MeshBy::load);
}

void MeshModel::setNow(std::vector<RankNow> now) {
  now = ofAll(std::move(now));
  if (now == now_ && !now.empty()) return;  // why there are none may be another
  now_ = std::move(now);
  recoloured(MeshBy::phase);
}

void MeshModel::recoloured(MeshBy by) {
  if (colouring_.by != by || rowCount() == 0) return;
  emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1),
                   {Qt::BackgroundRole, Qt::ForegroundRole, Qt::ToolTipRole});
}

void MeshModel::setChosenRank(int rank) {
  if (rank == chosen_) return;
  chosen_ = rank;
  if (rowCount() == 0) return;
  emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1), {PeerRole});
}

int MeshModel::typeCount() const {
  return plan_ ? static_cast<int>(plan_->cluster.groups.size()) : 0;
}

std::vector<Role> MeshModel::roles() const {
  std::vector<Role> roles;
  for (const RolePlan& role : plan_->roles) roles.push_back(role.role);
  return roles;
}

// The groups in order of their first ranks, and each rank's group.
void MeshModel::group() {
  groups_.clear();
  if (colouring_.role) {
    groups_ = groups_along(maps_.at(*colouring_.role), colouring_.axis);
  } else {
    std::map<std::vector<Role>, std::vector<int>> blocks;
    for (int rank = 0; rank < gpus_; ++rank) {
      const auto& roles = roles_on_[static_cast<std::size_t>(rank)];
      if (!roles.empty()) blocks[roles].push_back(rank);
    }
    for (auto& [roles, ranks] : blocks) groups_.push_back(std::move(ranks));
    std::sort(groups_.begin(), groups_.end());
  }
  group_colours_.clear();
  for (int group = 0; group < groupCount(); ++group) {
    group_colours_.push_back(colourOfGroup(group, groupCount()));
  }
  group_of_.assign(static_cast<std::size_t>(gpus_), -1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const int rank : groups_[g]) {
      group_of_[static_cast<std::size_t>(rank)] = static_cast<int>(g);
    }
  }
}

QModelIndex MeshModel::indexOf(int rank) const {
  const int columns = columnCount();
  if (rank < 0 || rank >= gpus_ || columns == 0) return {};
  return index(rank / columns, rank % columns);
}

int MeshModel::rankAt(const QModelIndex& index) const {
  if (!index.isValid()) return -1;
  const int rank = index.row() * columnCount() + index.column();
  return rank < gpus_ ? rank : -1;
}

int MeshModel::rowCount(const QModelIndex& parent) const {
  const int columns = columnCount();
  return parent.isValid() || columns == 0 ? 0 : (gpus_ + columns - 1) / columns;
}

int MeshModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || gpus_ == 0 ? 0 : static_cast<int>(plan_->cluster.gpus_per_node);
}

bool MeshModel::hasColours() const {
  switch (colouring_.by) {
    case MeshBy::memory:
      return !memory_.empty();
    case MeshBy::load:
      return !links_.empty();
    case MeshBy::phase:
      return !now_.empty();
    case MeshBy::groups:
      break;
  }
  return true;
}

// Memory above the limit is as strong as the limit; loads are small, and are told apart by the
// largest.
double MeshModel::most() const { return colouring_.by == MeshBy::load ? most_load_ : 1; }

// Of what the strongest colour stands for, or below 0 where there is nothing to share.
double MeshModel::share(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (roles_on_[at].empty()) return -1;
  if (colouring_.by == MeshBy::load) return links_[at].mean_load;
  const RankMemory& of = memory_[at];
  if (of.limit <= 0) return -1;
  return static_cast<double>(of.peak) / static_cast<double>(of.limit);
}

QColor MeshModel::colour(int rank, Theme theme) const {
  const auto at = static_cast<std::size_t>(rank);
  if (colouring_.by == MeshBy::groups) {
    const int group = group_of_[at];
    return group < 0 ? colourOfIdle() : group_colours_[static_cast<std::size_t>(group)];
  }
  if (!hasColours()) return colourOfIdle();
  if (colouring_.by == MeshBy::phase) {
    const RankNow& now = now_[at];
    return now.bad ? colourOfBad() : now.phase ? colourOf(*now.phase) : colourOfIdle();
  }
  const double of = share(rank), all = most();
  return of < 0 ? colourOfIdle() : colourOfShare(all > 0 ? of / all : 0, theme);
}

// What others worked out for the rank, as far as it is known, in lines.
QString MeshModel::measured(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  QString text;
  if (!memory_.empty() && memory_[at].limit > 0) {
    text += "<br>" +
            Words::tr("memory at its peak: %1").arg(partText(memory_[at].peak, memory_[at].limit));
  }
  if (!links_.empty() && !links_[at].name.empty()) {
    text += "<br>" + Words::tr("its busiest link (%1) carries %2 % of what it could in the step")
                         .arg(said(links_[at].name))
                         .arg(100 * links_[at].mean_load, 0, 'f', 1);
  }
  if (!now_.empty() && !now_[at].text.isEmpty())
    text += "<br>" + Words::tr("in the run: %1").arg(now_[at].text.toHtmlEscaped());
  return text;
}

QString MeshModel::coordinate(int rank) const {
  if (colouring_.role) return coordinateText(maps_.at(*colouring_.role), rank);
  const auto& roles = roles_on_[static_cast<std::size_t>(rank)];
  return roles.empty() ? Words::tr("idle") : coordinateText(maps_.at(roles.front()), rank);
}

QString MeshModel::describe(int rank) const {
  QString text = Words::tr("<b>rank %1</b>, node %2, %3")
                     .arg(rank)
                     .arg(rank / columnCount())
                     .arg(typesText(rank, rank + 1).toHtmlEscaped());
  const auto& roles = roles_on_[static_cast<std::size_t>(rank)];
  if (roles.empty()) return text + Words::tr("<br>not used") + measured(rank);
  for (const Role role : roles) {
    const RankMap& map = maps_.at(role);
    text += Words::tr("<br><b>%1</b> %2, layers %3")
                .arg(toText(name_of(role)), coordinateText(map, rank), layersText(map, rank));
    for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp}) {
      const std::vector<int> group = group_of(map, axis, rank);
      if (group.size() > 1) {
        text += Words::tr("<br>&nbsp;&nbsp;%1 group: %2").arg(axisName(axis), ranksText(group));
      }
    }
  }
  return text + measured(rank);
}

int MeshModel::typeOf(int rank) const {
  return typeCount() == 0 ? -1 : tessera::group_of(plan_->cluster, rank);
}

QString MeshModel::typeName(int type) const {
  const auto& cluster = plan_->cluster;
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
  if (chosen_ < 0 || chosen_ >= gpus_) return {};
  const int group = group_of_[static_cast<std::size_t>(chosen_)];
  return group < 0 ? std::vector<int>{chosen_} : groups_[static_cast<std::size_t>(group)];
}

bool MeshModel::isPeer(int rank) const {
  if (chosen_ < 0 || chosen_ >= gpus_) return false;
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
  return orientation == Qt::Vertical ? Words::tr("node %1").arg(section)
                                     : QString("GPU %1").arg(section);
}

std::vector<RankMemory> memory_of_ranks(const Plan& plan, const Calibration& calibration,
                                        const std::stop_token& stop) {
  Problems problems;
  std::vector<RankMemory> memory;
  for (const RankPeak& rank : rank_peaks(plan, calibration, problems, stop)) {
    memory.push_back({rank.peak.value, rank.limit.value});
  }
  if (!problems.empty()) throw Error(problems);
  return memory;
}

}  // namespace tessera::gui
