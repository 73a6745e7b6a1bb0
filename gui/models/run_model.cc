// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/document/text.h"

namespace tessera::gui {
const std::vector<RunModel::Figure>& RunModel::figures() {
  static const std::vector<Figure> all{
      {"Reward", {"critic/score/mean"}},
      {"KL", {"actor/kl_loss", "actor/reward_kl_penalty", "actor/ppo_kl"}},
      {"Tokens/s/GPU", {"perf/throughput"}},
      {"Time", {"timing_s/step"}, Figure::Kind::seconds},
      {"Reshard", {"timing_s/reshard", "reshard/seconds"}, Figure::Kind::seconds},
      {"Reshard GB/s", {"reshard/gbps"}},
      {"Reshard bytes", {"reshard/bytes"}, Figure::Kind::bytes}};
  return all;
}

void RunModel::cutFrom(std::size_t row) {
  beginRemoveRows({}, static_cast<int>(row), static_cast<int>(steps_.size()) - 1);
  steps_.resize(row);
  for (auto& [name, values] : columns_) values.resize(std::min(values.size(), row));
  endRemoveRows();
}

// Steps that only go on come in as one block of rows, however many they are.
void RunModel::append(const std::vector<StepNumbers>& steps) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < steps.size();) {
    const auto same = std::lower_bound(steps_.begin(), steps_.end(), steps[i].step);
    if (same != steps_.end()) cutFrom(static_cast<std::size_t>(same - steps_.begin()));
    std::size_t end = i + 1;
    while (end < steps.size() && steps[end].step > steps[end - 1].step) ++end;
    const std::size_t first = steps_.size();
    beginInsertRows({}, static_cast<int>(first), static_cast<int>(first + end - i) - 1);
    for (; i < end; ++i) {
      for (const auto& [name, value] : steps[i].data) {
        std::vector<double>& column = columns_[name];
        column.resize(steps_.size(), kNone);
        column.push_back(value);
      }
      steps_.push_back(steps[i].step);
    }
    endInsertRows();
  }
  if (!steps.empty()) emit stepsChanged();
}

void RunModel::clear() {
  beginResetModel();
  steps_.clear();
  columns_.clear();
  endResetModel();
  emit stepsChanged();
}

double RunModel::value(const std::string& name, int row) const {
  const auto found = columns_.find(name);
  const auto at = static_cast<std::size_t>(row);
  const bool there = found != columns_.end() && at < found->second.size();
  return there ? found->second[at] : std::numeric_limits<double>::quiet_NaN();
}

std::vector<QPointF> RunModel::series(const std::string& name) const {
  std::vector<QPointF> points;
  const auto found = columns_.find(name);
  if (found == columns_.end()) return points;
  points.reserve(found->second.size());
  for (std::size_t row = 0; row < found->second.size(); ++row) {
    if (std::isnan(found->second[row])) continue;
    points.emplace_back(static_cast<double>(steps_[row]), found->second[row]);
  }
  return points;
}

bool RunModel::has(const std::string& name) const {
  const auto found = columns_.find(name);
  return found != columns_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [](double value) { return !std::isnan(value); });
}

std::vector<std::string> RunModel::names() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : columns_) names.push_back(name);
  return names;
}

std::vector<Phase> RunModel::phases() const {
  std::vector<Phase> phases;
  for (const Phase phase : kEveryPhase) {
    if (has("timing_s/" + std::string(name_of(phase)))) phases.push_back(phase);
  }
  return phases;
}

int RunModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(steps_.size());
}

int RunModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(figures().size()) + 1;
}

QVariant RunModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  if (index.column() == 0) {
    return QVariant::fromValue<qint64>(steps_[static_cast<std::size_t>(index.row())]);
  }
  const Figure& figure = figures()[static_cast<std::size_t>(index.column() - 1)];
  for (const std::string& name : figure.names) {
    const double number = value(name, index.row());
    if (std::isnan(number)) continue;
    if (figure.kind == Figure::Kind::seconds) return secondsText(number);
    if (figure.kind == Figure::Kind::bytes)
      return bytesText(static_cast<std::int64_t>(std::clamp(number, -9e18, 9e18)));
    return QString::number(number, 'g', 4);
  }
  return {};
}

QVariant RunModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  if (section == 0) return QString("Step");
  const auto figure = static_cast<std::size_t>(section - 1);
  return figure < figures().size() ? figures()[figure].title : QVariant();
}

}  // namespace tessera::gui
