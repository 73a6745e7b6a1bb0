// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/plan_table_model.h"

#include <QFont>
#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "gui/document/headline.h"
#include "gui/document/plan_query.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "gui/units/number_role.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/plan_value.h"

namespace tessera::gui {
namespace {

// Its pools, whichever is named first. Notes behind the comma say beside which plan it stands, not
// what it is.
std::multiset<std::string> pools_of(const std::string& placement) {
  constexpr std::string_view kBetween = " | ";
  std::multiset<std::string> pools;
  std::string_view rest = std::string_view(placement).substr(0, placement.find(','));
  for (std::size_t end; (end = rest.find(kBetween)) != rest.npos;) {
    pools.emplace(rest.substr(0, end));
    rest.remove_prefix(end + kBetween.size());
  }
  pools.emplace(rest);
  return pools;
}

bool same_plan(const RunnerUp& a, const RunnerUp& b) {
  constexpr double kSame = 1e-9;
  return a.gpus == b.gpus && a.description == b.description &&
         pools_of(a.placement) == pools_of(b.placement) &&
         std::abs((a.step_s - b.step_s).value) <= kSame * a.step_s.value;
}

// Of a column of quantities, with its unit; empty = it has texts.
QString unitOfColumn(int section) {
  switch (section) {
    case PlanTableModel::Gpus:
    case PlanTableModel::Throughput:
    case PlanTableModel::Cost:
      return "%1";
    case PlanTableModel::Step:
      return "%1, s";
    case PlanTableModel::Worse:
      return "%1, %";
    case PlanTableModel::Peak:
      return "%1, GiB";
    default:
      return {};
  }
}

}  // namespace

void PlanTableModel::setWinner(const SharedPlan& winner, bool certified) {
  beginResetModel();
  certified_ = certified;
  rows_.clear();
  rows_.push_back({summary_of(*winner), winner});
  for (const RunnerUp& other : winner->certificate.runner_up) {
    rows_.push_back({other, nullptr});
  }
  endResetModel();
}

void PlanTableModel::setPlan(int row, SharedPlan plan) {
  rows_.at(static_cast<std::size_t>(row)).plan = std::move(plan);
  emit dataChanged(index(row, 0), index(row, ColumnCount - 1));
}

void PlanTableModel::addFront(const std::vector<RunnerUp>& front) {
  std::vector<Row> others;
  for (const RunnerUp& plan : front) {
    const auto is_it = [&](const Row& row) { return same_plan(row.summary, plan); };
    const auto known = std::ranges::find_if(rows_, is_it);
    if (known == rows_.end()) {
      if (std::ranges::none_of(others, is_it)) others.push_back({plan, nullptr, true});
      continue;
    }
    known->on_front = true;
    if (known->summary.billed_gpus == 0) known->summary.billed_gpus = plan.billed_gpus;
  }
  emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
  if (others.empty()) return;
  beginInsertRows({}, rowCount(), rowCount() + static_cast<int>(others.size()) - 1);
  for (Row& other : others) rows_.push_back(std::move(other));
  endInsertRows();
  emit headerDataChanged(Qt::Horizontal, Worse, Worse);
  emit dataChanged(index(0, Worse), index(0, Worse));
}

void PlanTableModel::clear() {
  beginResetModel();
  rows_.clear();
  endResetModel();
}

int PlanTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PlanTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant PlanTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
      return text(row, index.column());
    case SortRole:
      return sortKey(row, index.column());
    case kNumberRole:
      return number(row, index.column());
    case HasPlanRole:
      return row.plan != nullptr;
    case Qt::ToolTipRole:
      return QString::fromStdString(row.summary.description).replace(", ", "\n") +
             (row.plan ? "" : Words::tr("\nselect it to plan it in full"));
    case Qt::TextAlignmentRole:
      if (index.column() == Placement || index.column() == Layouts) {
        return QVariant(Qt::AlignLeft | Qt::AlignVCenter);
      }
      return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::FontRole:
      if (index.row() == 0) {
        QFont font;
        font.setBold(true);
        return font;
      }
      return {};
    default:
      return {};
  }
}

// Every plan of a table makes the step's tokens, whether it is planned in full or not.
double PlanTableModel::throughput(const Row& row) const {
  if (row.plan) return row.plan->prediction.tokens_per_s_per_gpu;
  const Plan& best = *rows_.front().plan;
  const double gpus = row.summary.gpus > 0 ? row.summary.gpus : gpus_of(best);
  const Seconds all = best.prediction.step_s * gpus_of(best), own = row.summary.step_s * gpus;
  return own > 0 ? best.prediction.tokens_per_s_per_gpu * (all / own) : 0;
}

// By what the search minimises.
double PlanTableModel::worse(const Row& row) const {
  const Plan& best = *rows_.front().plan;
  return worse_by(best, priced(best, row.summary));
}

// A plan of a file may be one of few that were searched for; a front is found among all.
bool PlanTableModel::isBeaten() const {
  return !certified_ || rows_.front().plan->certificate.better.used() ||
         std::any_of(rows_.begin(), rows_.end(),
                     [this](const Row& row) { return worse(row) <= -kNoPart; });
}

std::optional<StepCost> PlanTableModel::costOf(const Row& row) const {
  const RunnerUp& plan = row.summary;
  const Plan& winner = *rows_.front().plan;
  if (row.plan) return cost_of(winner, priced(*row.plan));
  const bool one_price = winner.cluster.groups.empty();
  if (plan.gpus == 0 || (!one_price && plan.billed_gpus == 0)) return std::nullopt;
  return cost_of(winner, priced(winner, plan));
}

bool PlanTableModel::isByCost() const {
  return !rows_.empty() && objective_of(*rows_.front().plan) == Objective::cost;
}

QVariant PlanTableModel::text(const Row& row, int column) const {
  switch (column) {
    case Placement:
      return said(row.summary.placement);
    case Gpus:
      return row.summary.gpus > 0 ? countText(row.summary.gpus) : QString();
    case Step:
      return secondsText(row.summary.step_s);
    case Worse: {
      if (&row == &rows_.front()) {
        if (isBeaten()) return QString("-");
        return row.plan->certificate.fixed.empty() ? Words::tr("best") : Words::tr("best as fixed");
      }
      const double behind = worse(row);
      if (std::abs(behind) < kNoPart) return Words::tr("as good");
      return (behind < 0 ? "" : "+") + differenceText(behind);
    }
    case Throughput: {
      const double tokens = throughput(row);
      return tokens > 0 ? countText(tokens) : QString();
    }
    case Cost: {
      const auto cost = costOf(row);
      return cost ? costText(*cost) : QString();
    }
    case Peak:
      return row.plan ? bytesText(row.plan->prediction.peak_bytes) : QString();
    case Layouts:
      return QString::fromStdString(row.summary.description);
    default:
      return {};
  }
}

QVariant PlanTableModel::sortKey(const Row& row, int column) const {
  switch (column) {
    case Gpus:
      return row.summary.gpus;
    case Step:
      return row.summary.step_s.value;
    case Worse:
      return worse(row);
    case Throughput:
      return throughput(row);
    case Cost: {
      const auto cost = costOf(row);
      return cost ? cost->value : 0;
    }
    case Peak:
      return QVariant::fromValue<qint64>(row.plan ? row.plan->prediction.peak_bytes.value : 0);
    default:
      return text(row, column);
  }
}

QVariant PlanTableModel::number(const Row& row, int column) const {
  switch (column) {
    case Gpus:
      return row.summary.gpus > 0 ? QVariant(row.summary.gpus) : QVariant();
    case Step:
      return row.summary.step_s.value;
    case Worse:
      return 100 * worse(row);
    case Throughput: {
      const double tokens = throughput(row);
      return tokens > 0 ? QVariant(tokens) : QVariant();
    }
    case Cost: {
      const auto cost = costOf(row);
      return cost ? QVariant(cost->value) : QVariant();
    }
    case Peak:
      return row.plan ? QVariant(gib(row.plan->prediction.peak_bytes)) : QVariant();
    default:
      return {};
  }
}

QVariant PlanTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Placement"),    QT_TRANSLATE_NOOP("Words", "GPUs"),
      QT_TRANSLATE_NOOP("Words", "Step"),         QT_TRANSLATE_NOOP("Words", "Against best"),
      QT_TRANSLATE_NOOP("Words", "Tokens/s/GPU"), QT_TRANSLATE_NOOP("Words", "Cost of a step"),
      QT_TRANSLATE_NOOP("Words", "Peak memory"),  QT_TRANSLATE_NOOP("Words", "Layouts")};
  if (role == kNumberRole && orientation == Qt::Horizontal) {
    if (section == Cost && !rows_.empty()) {
      const auto cost = costOf(rows_.front());
      const bool money = cost && cost->money;
      return Words::tr(kNames[Cost]) + ", " + (money ? Words::tr("the cluster's money") : "GPU s");
    }
    const QString with_unit = unitOfColumn(section);
    const QString name = headerData(section, orientation, Qt::DisplayRole).toString();
    return with_unit.isEmpty() ? QVariant() : QVariant(with_unit.arg(name));
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  if (section == Worse && !rows_.empty() && isBeaten()) return Words::tr("Against row %1").arg(1);
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
