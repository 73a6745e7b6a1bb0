// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_model.h"

#include <algorithm>

#include "gui/models/text.h"

namespace tessera::gui {
namespace {

const double* find(const StepNumbers& step, const std::string& name) {
  const auto found = step.data.find(name);
  return found == step.data.end() ? nullptr : &found->second;
}

}  // namespace

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

void RunModel::append(const std::vector<StepNumbers>& steps) {
  for (const StepNumbers& step : steps) {
    const auto same = std::lower_bound(
        steps_.begin(), steps_.end(), step.step,
        [](const StepNumbers& known, std::int64_t number) { return known.step < number; });
    if (same != steps_.end()) {
      const auto row = static_cast<int>(same - steps_.begin());
      beginRemoveRows({}, row, static_cast<int>(steps_.size()) - 1);
      steps_.erase(same, steps_.end());
      endRemoveRows();
    }
    const auto row = static_cast<int>(steps_.size());
    beginInsertRows({}, row, row);
    steps_.push_back(step);
    endInsertRows();
  }
  if (!steps.empty()) emit stepsChanged();
}

void RunModel::clear() {
  beginResetModel();
  steps_.clear();
  endResetModel();
  emit stepsChanged();
}

std::vector<QPointF> RunModel::series(const std::string& name) const {
  std::vector<QPointF> points;
  for (const StepNumbers& step : steps_) {
    if (const double* value = find(step, name)) {
      points.emplace_back(static_cast<double>(step.step), *value);
    }
  }
  return points;
}

bool RunModel::has(const std::string& name) const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [&](const StepNumbers& step) { return step.data.contains(name); });
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
  const StepNumbers& step = steps_[static_cast<std::size_t>(index.row())];
  if (index.column() == 0) return QVariant::fromValue<qint64>(step.step);
  const Figure& figure = figures()[static_cast<std::size_t>(index.column() - 1)];
  for (const std::string& name : figure.names) {
    const double* value = find(step, name);
    if (value == nullptr) continue;
    if (figure.kind == Figure::Kind::seconds) return secondsText(*value);
    if (figure.kind == Figure::Kind::bytes) return bytesText(static_cast<std::int64_t>(*value));
    return QString::number(*value, 'g', 4);
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
