// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/memory_model.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/translations/said.h"
#include "gui/units/number_role.h"

namespace tessera::gui {

void MemoryModel::setPlan(SharedPlan plan, const std::optional<Calibration>& calibration) {
  beginResetModel();
  plan_ = std::move(plan);
  calibration_ = calibration;
  lookAt(std::nullopt);
  fullest_ = rank();
  endResetModel();
}

void MemoryModel::setRank(int rank) {
  beginResetModel();
  lookAt(rank < 0 ? std::nullopt : std::optional(rank));
  endResetModel();
}

void MemoryModel::setStacking(Stacking stacking) {
  beginResetModel();
  stacking_ = stacking;
  build();
  endResetModel();
}

void MemoryModel::lookAt(std::optional<int> rank) {
  account_.reset();
  problem_.clear();
  if (calibration_) {
    Problems problems;
    account_ = memory_account(*plan_, *calibration_, {.rank = rank}, problems);
    problem_ = problemsText(problems);
  } else {
    problem_ = Words::tr("the plan's constants are not here");
  }
  build();
}

MemoryModel::Series& MemoryModel::seriesOf(const QString& name, const QColor& colour) {
  for (Series& known : series_) {
    if (known.name == name) return known;
  }
  return series_.emplace_back(Series{name, colour, std::vector<std::int64_t>(rows(), 0)});
}

void MemoryModel::build() {
  series_.clear();
  for (std::size_t row = 0; row < rows(); ++row) {
    const PhaseAccount& phase = account_->phases[row];
    for (const RoleAccount& role : phase.roles) {
      if (stacking_ == Stacking::roles) {
        seriesOf(toText(name_of(role.role)), colourOf(role.role)).bytes[row] +=
            role.use.total().value;
        continue;
      }
      for (const auto& [name, bytes] : memory_classes(role.use)) {
        seriesOf(said(name), colourOfMemory(toText(name))).bytes[row] += bytes.value;
      }
    }
    seriesOf(said("reserve"), colourOfMemory("reserve")).bytes[row] += phase.reserve.value;
  }
  std::erase_if(series_, [](const Series& series) {
    return std::all_of(series.bytes.begin(), series.bytes.end(), [](auto b) { return b == 0; });
  });
}

QStringList MemoryModel::phases() const {
  QStringList names;
  for (std::size_t row = 0; row < rows(); ++row) {
    names << toText(name_of(account_->phases[row].phase));
  }
  return names;
}

std::int64_t MemoryModel::total(int row) const {
  std::int64_t bytes = 0;
  for (const Series& series : series_) bytes += series.bytes[static_cast<std::size_t>(row)];
  return bytes;
}

int MemoryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows());
}

int MemoryModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(series_.size()) + 1;
}

QVariant MemoryModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const bool is_total = index.column() == static_cast<int>(series_.size());
  const auto column = static_cast<std::size_t>(index.column());
  const std::int64_t bytes =
      is_total ? total(index.row()) : series_[column].bytes[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
      return bytesText(bytes);
    case BytesRole:
      return QVariant::fromValue<qint64>(bytes);
    case kNumberRole:
      return gib(Bytes{bytes});
    case Qt::DecorationRole:
      return is_total ? QVariant() : QVariant(series_[column].colour);
    case BadRole:
      return is_total && bytes > limit();
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant MemoryModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == kNumberRole && orientation == Qt::Horizontal) {
    return headerData(section, orientation, Qt::DisplayRole).toString() + ", GiB";
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return phases().value(section);
  if (section == static_cast<int>(series_.size())) return Words::tr("total");
  return section >= 0 && section < static_cast<int>(series_.size())
             ? series_[static_cast<std::size_t>(section)].name
             : QVariant();
}

}  // namespace tessera::gui
