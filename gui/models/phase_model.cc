// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/phase_model.h"

#include <algorithm>
#include <map>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/units/number_role.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"

namespace tessera::gui {
namespace {

QString ranksText(const std::vector<int>& ranks) {
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end());
  if (*most - *least + 1 != static_cast<int>(ranks.size())) {
    return Words::tr("%1 ranks").arg(ranks.size());
  }
  return *least == *most ? QString::number(*least) : QString("%1-%2").arg(*least).arg(*most);
}

}  // namespace

void PhaseModel::setPlan(const Plan& plan) {
  beginResetModel();
  rows_.clear();
  blocks_.clear();
  ranks_.clear();
  step_s_ = plan.prediction.step_s;

  std::vector<std::vector<int>> block_ranks;
  std::map<Role, int> block_of;
  for (const RolePlan& role : plan.roles) {
    std::vector<int> ranks = role.ranks;
    std::sort(ranks.begin(), ranks.end());
    const auto same = std::find(block_ranks.begin(), block_ranks.end(), ranks);
    block_of[role.role] = static_cast<int>(same - block_ranks.begin());
    if (same == block_ranks.end()) {
      block_ranks.push_back(ranks);
      blocks_ << toText(name_of(role.role));
      ranks_ << ranksText(ranks);
    } else {
      blocks_[block_of[role.role]] += " + " + toText(name_of(role.role));
    }
  }
  PhaseSeconds seconds;
  for (const auto& [phase, taken] : plan.prediction.phases_s) seconds[phase] = taken;
  const auto blocks = blocks_of(plan.schedule, placement_of(plan));
  const PhaseSeconds starts = Iteration(plan.schedule, blocks).phase_starts(seconds);
  for (const ScheduledCall& call : plan.schedule) {
    // A call without a model (rule rewards, advantages) runs on the actor's ranks.
    const auto role = block_of.find(call.role);
    Row row{.phase = call.phase, .role = call.role};
    row.block = role != block_of.end() ? role->second : block_of[Role::actor];
    row.seconds = seconds[call.phase].value;
    row.start_s = starts[call.phase].value;
    row.share = step_s_ > 0 ? row.seconds / step_s_ : 0;
    rows_.push_back(row);
  }
  endResetModel();
}

int PhaseModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PhaseModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant PhaseModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == Qt::DecorationRole && index.column() == Name) return colourOf(row.phase);
  if (role == Qt::TextAlignmentRole) {
    return QVariant((index.column() >= Start ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role == kNumberRole) {
    switch (index.column()) {
      case Start:
        return row.start_s;
      case Time:
        return row.seconds;
      case Share:
        return 100 * row.share;
      default:
        return {};
    }
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Name:
      return toText(name_of(row.phase));
    case RoleName:
      return toText(name_of(row.role));
    case Ranks:
      return ranks_.value(row.block);
    case Start:
      return secondsText(row.start_s);
    case Time:
      return secondsText(row.seconds);
    default:
      return QString("%1 %").arg(100 * row.share, 0, 'f', 1);
  }
}

QVariant PhaseModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Phase"), QT_TRANSLATE_NOOP("Words", "Role"),
      QT_TRANSLATE_NOOP("Words", "Ranks"), QT_TRANSLATE_NOOP("Words", "Start"),
      QT_TRANSLATE_NOOP("Words", "Time"),  QT_TRANSLATE_NOOP("Words", "Share")};
  if (role == kNumberRole && orientation == Qt::Horizontal && section >= Start) {
    const QString name = headerData(section, orientation, Qt::DisplayRole).toString();
    return name + (section == Share ? ", %" : ", s");
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
