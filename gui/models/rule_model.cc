// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/rule_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"

namespace tessera::gui {
namespace {

// What is wrong first, what says nothing last.
int rank_of(RuleOutcome outcome) {
  static constexpr std::array kOrder{RuleOutcome::violated, RuleOutcome::holds,
                                     RuleOutcome::unreachable, RuleOutcome::unknown,
                                     RuleOutcome::off};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), outcome) - kOrder.begin());
}

QString number(const std::optional<double>& value) {
  return value ? QString::number(*value, 'g', 4) : QString("-");
}

QString words_of(RuleOperator relation) {
  switch (relation) {
    case RuleOperator::less:
      return "below";
    case RuleOperator::at_most:
      return "at most";
    case RuleOperator::greater:
      return "above";
    case RuleOperator::at_least:
      break;
  }
  return "at least";
}

QString limitText(const JudgedRule& row) {
  return row.verdict.limit ? words_of(row.rule->relation) + " " + number(row.verdict.limit)
                           : QString("-");
}

}  // namespace

RuleModel::RuleModel(QObject* parent) : QAbstractTableModel(parent) { setProfile("default"); }

bool RuleModel::setProfile(const QString& name) {
  Problems problems;
  auto profile = read_rules(name.toStdString(), problems);
  if (!profile) return false;
  beginResetModel();
  rows_.clear();  // they point into the former one
  profile_ = *std::move(profile);
  judgeAgain();
  endResetModel();
  return true;
}

void RuleModel::setExpectation(const Expectation& expectation) {
  beginResetModel();
  expectation_ = expectation;
  judgeAgain();
  endResetModel();
}

void RuleModel::setValues(const std::map<std::string, double>& values) {
  beginResetModel();
  values_ = MetricValues(values.begin(), values.end());
  judgeAgain();
  endResetModel();
}

void RuleModel::judgeAgain() {
  rows_ = judge(profile_, values_, expectation_);
  std::stable_sort(rows_.begin(), rows_.end(), [](const JudgedRule& a, const JudgedRule& b) {
    return rank_of(a.verdict.outcome) < rank_of(b.verdict.outcome);
  });
}

int RuleModel::violated() const {
  return static_cast<int>(std::count_if(rows_.begin(), rows_.end(), [](const JudgedRule& row) {
    return row.verdict.outcome == RuleOutcome::violated;
  }));
}

QString RuleModel::banner() const {
  const int count = violated();
  if (count == 0) return {};
  const JudgedRule& first = rows_.front();
  return QString("%1: %2 is %3, where %4 was expected: %5")
      .arg(count == 1 ? QString("A rule is violated") : QString("%1 rules are violated").arg(count),
           QString::fromStdString(first.rule->metric), number(first.verdict.value),
           limitText(first), QString::fromStdString(first.rule->advice));
}

QString RuleModel::describe() const {
  return QString::fromStdString(tessera::describe(profile_, rows_));
}

std::vector<RuleModel::Line> RuleModel::linesOf(const std::string& metric) const {
  std::vector<Line> lines;
  for (const JudgedRule& row : rows_) {
    const bool judged =
        row.verdict.outcome == RuleOutcome::holds || row.verdict.outcome == RuleOutcome::violated;
    if (row.rule->metric != metric || !judged || !row.verdict.limit) continue;
    lines.push_back({QString::fromStdString(row.rule->name), *row.verdict.limit,
                     row.verdict.outcome == RuleOutcome::violated});
  }
  return lines;
}

int RuleModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RuleModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant RuleModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const JudgedRule& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == BadRole) return row.verdict.outcome == RuleOutcome::violated;
  if (role == Qt::ToolTipRole) {
    return QString("%1, evidence %2. %3")
        .arg(QString::fromStdString(row.rule->source), toText(name_of(row.rule->evidence)),
             QString::fromStdString(row.rule->published));
  }
  if (role == Qt::TextAlignmentRole) {
    const bool right = index.column() == Value || index.column() == Limit;
    return QVariant((right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Outcome:
      return toText(name_of(row.verdict.outcome));
    case Name:
      return QString::fromStdString(row.rule->name);
    case Metric:
      return QString::fromStdString(row.rule->metric);
    case Value:
      return number(row.verdict.value);
    case Limit:
      return limitText(row);
    default:
      return QString::fromStdString(row.rule->advice);
  }
}

QVariant RuleModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {"Outcome", "Rule", "Metric", "Value", "Limit", "Advice"};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? QString(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
