// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/metrics/phase_seconds.h"

namespace tessera::gui {
const std::vector<RunModel::Figure>& RunModel::figures() {
  static const std::vector<Figure> all{
      {QT_TRANSLATE_NOOP("Words", "Reward"), {"critic/score/mean"}},
      {QT_TRANSLATE_NOOP("Words", "KL"),
       {"actor/kl_loss", "actor/reward_kl_penalty", "actor/ppo_kl"}},
      {QT_TRANSLATE_NOOP("Words", "Tokens/s/GPU"), {"perf/throughput"}},
      {QT_TRANSLATE_NOOP("Words", "Time"), {"timing_s/step"}, Figure::Kind::seconds},
      {QT_TRANSLATE_NOOP("Words", "Reshard"),
       {"timing_s/reshard", "reshard/seconds", "timing_s/update_weights",
        "timing_s/sync_rollout_weights", "timing_s/param_sync"},
       Figure::Kind::seconds},
      {QT_TRANSLATE_NOOP("Words", "Reshard GB/s"), {"reshard/gbps"}},
      {QT_TRANSLATE_NOOP("Words", "Reshard bytes"), {"reshard/bytes"}, Figure::Kind::bytes}};
  return all;
}

// However many steps come, they are one block of rows.
void RunModel::append(StepColumns steps) {
  if (steps.steps.empty()) return;
  const auto row = static_cast<int>(data_.rowOf(steps.steps.front()));
  if (row < rowCount()) {
    beginRemoveRows({}, row, rowCount() - 1);
    data_.cutFrom(static_cast<std::size_t>(row));
    endRemoveRows();
  }
  beginInsertRows({}, row, row + static_cast<int>(steps.steps.size()) - 1);
  data_.append(std::move(steps));
  endInsertRows();
  emit stepsChanged();
}

void RunModel::clear() {
  beginResetModel();
  data_ = {};
  endResetModel();
  emit stepsChanged();
}

double RunModel::value(const std::string& name, int row) const {
  const auto found = data_.columns.find(name);
  const auto at = static_cast<std::size_t>(row);
  const bool there = found != data_.columns.end() && at < found->second.size();
  return there ? found->second[at] : std::numeric_limits<double>::quiet_NaN();
}

std::vector<QPointF> RunModel::series(const std::string& name) const {
  std::vector<QPointF> points;
  const auto found = data_.columns.find(name);
  if (found == data_.columns.end()) return points;
  points.reserve(found->second.size());
  for (std::size_t row = 0; row < found->second.size(); ++row) {
    if (std::isnan(found->second[row])) continue;
    points.emplace_back(static_cast<double>(data_.steps[row]), found->second[row]);
  }
  return points;
}

std::optional<double> RunModel::last(const std::string& name) const {
  const auto found = data_.columns.find(name);
  if (found == data_.columns.end()) return std::nullopt;
  const std::vector<double>& values = found->second;
  const auto value =
      std::find_if(values.rbegin(), values.rend(), [](double value) { return !std::isnan(value); });
  return value == values.rend() ? std::nullopt : std::optional(*value);
}

bool RunModel::has(const std::string& name) const {
  const auto found = data_.columns.find(name);
  return found != data_.columns.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](double value) { return !std::isnan(value); });
}

std::vector<std::string> RunModel::names() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : data_.columns) names.push_back(name);
  return names;
}

std::vector<Phase> RunModel::phases() const {
  std::vector<Phase> phases;
  for (const Phase phase : kEveryPhase) {
    if (!phase_seconds(data_, phase).empty()) phases.push_back(phase);
  }
  return phases;
}

int RunModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(data_.steps.size());
}

int RunModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(figures().size()) + 1;
}

QVariant RunModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  if (index.column() == 0) {
    return QVariant::fromValue<qint64>(data_.steps[static_cast<std::size_t>(index.row())]);
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
  if (section == 0) return Words::tr("Step");
  const auto figure = static_cast<std::size_t>(section - 1);
  return figure < figures().size() ? figures()[figure].title() : QVariant();
}

}  // namespace tessera::gui
