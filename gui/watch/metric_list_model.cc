// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/watch/metric_list_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cost_models/documents/csv.h"
#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kFirstChosen = 4;

// Of these the first few that a run has are drawn: what learning looks at, by verl's names.
constexpr std::array<const char*, 7> kUsual{
    "critic/score/mean", "response_length/mean",       "actor/entropy",    "actor/entropy_loss",
    "actor/grad_norm",   "response_length/clip_ratio", "actor/pg_clipfrac"};

QString numberText(double value) { return QString::number(value, 'g', 5); }

}  // namespace

MetricListModel::MetricListModel(RunFollower* run, QObject* parent)
    : QAbstractTableModel(parent), run_(run) {
  connect(run->steps(), &RunModel::stepsChanged, this, &MetricListModel::follow);
  connect(run->rules(), &QAbstractItemModel::modelReset, this, [this] {
    if (!names_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
  });
  follow();
}

void MetricListModel::follow() {
  std::vector<std::string> names = run_->steps()->names();
  std::erase_if(names, [this](const std::string& name) { return !run_->steps()->last(name); });
  if (names == names_) {
    if (!names_.empty()) emit dataChanged(index(0, Last), index(rowCount() - 1, Last));
    return;
  }
  beginResetModel();
  names_ = std::move(names);
  if (!touched_) chooseFirst();
  endResetModel();
  emit drawnChanged();
}

void MetricListModel::chooseFirst() {
  chosen_.clear();
  for (const char* usual : kUsual) {
    const bool has = std::binary_search(names_.begin(), names_.end(), std::string(usual));
    if (has && chosen_.size() < kFirstChosen) chosen_.emplace_back(usual);
  }
  for (std::size_t i = 0; chosen_.empty() && i < std::min(kFirstChosen, names_.size()); ++i) {
    chosen_.push_back(names_[i]);
  }
}

bool MetricListModel::isChosen(const std::string& name) const {
  return std::find(chosen_.begin(), chosen_.end(), name) != chosen_.end();
}

std::vector<std::string> MetricListModel::drawn() const {
  std::vector<std::string> drawn;
  for (const std::string& name : chosen_) {
    if (std::binary_search(names_.begin(), names_.end(), name)) drawn.push_back(name);
  }
  return drawn;
}

void MetricListModel::choose(const std::string& name, bool chosen) {
  if (chosen == isChosen(name)) return;
  touched_ = true;
  if (!chosen) {
    std::erase(chosen_, name);
  } else {
    if (chosen_.size() == kMostChosen) chosen_.erase(chosen_.begin());
    chosen_.push_back(name);
  }
  if (!names_.empty()) emit dataChanged(index(0, Name), index(rowCount() - 1, Name));
  emit drawnChanged();
}

std::optional<std::vector<std::string>> MetricListModel::choice() const {
  if (!touched_) return std::nullopt;
  return chosen_;
}

void MetricListModel::setChoice(std::vector<std::string> names) {
  touched_ = true;
  if (names.size() > kMostChosen) names.resize(kMostChosen);
  chosen_ = std::move(names);
  if (!names_.empty()) emit dataChanged(index(0, Name), index(rowCount() - 1, Name));
  emit drawnChanged();
}

int MetricListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(names_.size());
}

int MetricListModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant MetricListModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const std::string& metric = name(index.row());
  if (role == BadRole) {
    const auto rules = run_->rules()->linesOf(metric);
    return std::any_of(rules.begin(), rules.end(),
                       [](const RuleModel::Line& line) { return line.violated; });
  }
  if (index.column() == Name) {
    if (role == Qt::CheckStateRole) return isChosen(metric) ? Qt::Checked : Qt::Unchecked;
    return role == Qt::DisplayRole || role == Qt::ToolTipRole ? QVariant(toText(metric))
                                                              : QVariant();
  }
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const auto last = run_->steps()->last(metric);
  return last ? QVariant(numberText(*last)) : QVariant();
}

bool MetricListModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::CheckStateRole || !index.isValid() || index.column() != Name) return false;
  choose(std::string(name(index.row())), value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags MetricListModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return index.column() == Name ? flags | Qt::ItemIsUserCheckable : flags;
}

QVariant MetricListModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {QT_TRANSLATE_NOOP("Words", "Metric"),
                                           QT_TRANSLATE_NOOP("Words", "Last")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

std::string csv_of(const RunModel& run) {
  if (run.steps().empty()) return {};
  const std::vector<std::string> names = run.names();
  CsvTable table;
  table.header = {"step"};
  table.header.insert(table.header.end(), names.begin(), names.end());
  for (int row = 0; row < run.rowCount(); ++row) {
    CsvRow cells;
    cells.cells.push_back(std::to_string(run.steps()[static_cast<std::size_t>(row)]));
    for (const std::string& name : names) {
      const double value = run.value(name, row);
      cells.cells.push_back(std::isnan(value) ? std::string()
                                              : QString::number(value, 'g', 17).toStdString());
    }
    table.rows.push_back(std::move(cells));
  }
  return to_csv(table);
}

}  // namespace tessera::gui
