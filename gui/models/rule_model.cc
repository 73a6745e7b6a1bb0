// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/rule_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "gui/units/metric_text.h"
#include "gui/units/number_role.h"

namespace tessera::gui {
namespace {

// What is wrong first, what says nothing last.
int rank_of(RuleOutcome outcome) {
  static constexpr std::array kOrder{RuleOutcome::violated, RuleOutcome::holds,
                                     RuleOutcome::unreachable, RuleOutcome::unknown,
                                     RuleOutcome::off};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), outcome) - kOrder.begin());
}

QString words_of(RuleOperator relation) {
  switch (relation) {
    case RuleOperator::less:
      return Words::tr("below");
    case RuleOperator::at_most:
      return Words::tr("at most");
    case RuleOperator::greater:
      return Words::tr("above");
    case RuleOperator::at_least:
      break;
  }
  return Words::tr("at least");
}

QString valueText(const JudgedRule& row) {
  return row.verdict.value ? metricText(row.rule->metric, *row.verdict.value) : QString("-");
}

// As the file has it: "1.25 x predicted", "50 ms".
QString statedText(const Rule& rule) {
  const QString number = QString::number(rule.value, 'g', 4);
  switch (rule.unit) {
    case RuleUnit::predicted:
      return Words::tr("%1 x predicted").arg(number);
    case RuleUnit::step_share:
      return Words::tr("%1 of the step").arg(number);
    case RuleUnit::percent:
      return number + " %";
    default:
      return metricText(rule.metric, rule.unit == RuleUnit::ms ? rule.value * 1e-3 : rule.value);
  }
}

// In the metric's unit, and while that refers to a number that is not there as it is stated.
QString limitText(const JudgedRule& row) {
  return words_of(row.rule->relation) + " " +
         (row.verdict.limit ? metricText(row.rule->metric, *row.verdict.limit)
                            : statedText(*row.rule));
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
  return Words::tr("%1: %2 is %3, where %4 was expected: %5")
      .arg(count == 1 ? Words::tr("A rule is violated")
                      : Words::tr("%1 rules are violated").arg(count),
           QString::fromStdString(first.rule->metric), valueText(first), limitText(first),
           said(first.rule->advice));
}

QString RuleModel::describe() const { return saidLines(tessera::describe(profile_, rows_)); }

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
    if (index.column() == Advice) return said(row.rule->advice);
    if (index.column() == Outcome && row.verdict.outcome == RuleOutcome::unknown) {
      if (!row.verdict.value) return Words::tr("The run has no such number");
      return row.rule->unit == RuleUnit::predicted
                 ? Words::tr("No prediction is there that it could be judged by")
                 : Words::tr("The limit is one of GPUs, and the ranks are processors");
    }
    return QString("%1 (%2) %3 %4\n")
               .arg(QString::fromStdString(row.rule->name),
                    QString::fromStdString(row.rule->metric), words_of(row.rule->relation),
                    statedText(*row.rule)) +
           Words::tr("%1, evidence %2. %3")
               .arg(said(row.rule->source), said(name_of(row.rule->evidence)),
                    said(row.rule->published));
  }
  if (role == Qt::TextAlignmentRole) {
    const bool right = index.column() == Value || index.column() == Limit;
    return QVariant((right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role == kNumberRole) {
    const auto& number = index.column() == Limit ? row.verdict.limit : row.verdict.value;
    const bool counts = index.column() == Value || index.column() == Limit;
    return counts && number ? QVariant(*number) : QVariant();
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Outcome:
      return row.verdict.outcome == RuleOutcome::unknown ? Words::tr("not judged")
                                                         : said(name_of(row.verdict.outcome));
    case Name:
      return QString::fromStdString(row.rule->name);
    case Metric:
      return QString::fromStdString(row.rule->metric);
    case Value:
      return valueText(row);
    case Limit:
      return limitText(row);
    default:
      return said(row.rule->advice);
  }
}

QVariant RuleModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Outcome"), QT_TRANSLATE_NOOP("Words", "Rule"),
      QT_TRANSLATE_NOOP("Words", "Metric"),  QT_TRANSLATE_NOOP("Words", "Value"),
      QT_TRANSLATE_NOOP("Words", "Limit"),   QT_TRANSLATE_NOOP("Words", "Advice")};
  if (role == kNumberRole && orientation == Qt::Horizontal &&
      (section == Value || section == Limit)) {
    return Words::tr("%1, in the metric's unit").arg(Words::tr(kNames[section]));
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
