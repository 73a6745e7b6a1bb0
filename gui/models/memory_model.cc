// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/memory_model.h"

#include <algorithm>
#include <array>

#include "gui/models/colours.h"
#include "gui/models/text.h"

namespace tessera::gui {
namespace {

struct MemoryClass {
  const char* name;
  Bytes MemoryUse::*member;
};
constexpr std::array<MemoryClass, kMemoryClasses> kClasses{
    {{"weights", &MemoryUse::weights},
     {"gradients", &MemoryUse::gradients},
     {"master weights", &MemoryUse::master_weights},
     {"optimizer", &MemoryUse::optimizer},
     {"activations", &MemoryUse::activations},
     {"logits", &MemoryUse::logits},
     {"KV cache", &MemoryUse::kv_cache},
     {"gathered", &MemoryUse::gathered},
     {"communication", &MemoryUse::communication},
     {"reshard", &MemoryUse::reshard},
     {"workspace", &MemoryUse::workspace},
     {"reserve", &MemoryUse::reserve}}};

QString toText(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

MemoryUse use_of(const RolePlan& role, Phase phase) {
  const auto found = role.memory.find(phase);
  return found == role.memory.end() ? MemoryUse{} : found->second;
}

bool runs_on(const RolePlan& role, int rank) {
  return std::find(role.ranks.begin(), role.ranks.end(), rank) != role.ranks.end();
}

int fullest_rank(const Plan& plan, const std::vector<Phase>& phases) {
  const auto ranks = static_cast<std::size_t>(plan.world_size());
  std::vector<std::int64_t> worst(ranks, 0);
  for (const Phase phase : phases) {
    std::vector<std::int64_t> total(ranks, 0);
    for (const RolePlan& role : plan.roles) {
      const std::int64_t bytes = use_of(role, phase).total();
      for (const int rank : role.ranks) total[static_cast<std::size_t>(rank)] += bytes;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      worst[rank] = std::max(worst[rank], total[rank]);
    }
  }
  return ranks == 0
             ? -1
             : static_cast<int>(std::max_element(worst.begin(), worst.end()) - worst.begin());
}

}  // namespace

void MemoryModel::setPlan(const Plan& plan) {
  beginResetModel();
  plan_ = plan;
  phases_.clear();
  for (const ScheduledCall& call : plan_.schedule) phases_.push_back(call.phase);
  fullest_ = fullest_rank(plan_, phases_);
  rank_ = fullest_;
  build();
  endResetModel();
}

void MemoryModel::setRank(int rank) {
  beginResetModel();
  rank_ = rank < 0 ? fullest_ : rank;
  build();
  endResetModel();
}

void MemoryModel::setStacking(Stacking stacking) {
  beginResetModel();
  stacking_ = stacking;
  build();
  endResetModel();
}

void MemoryModel::build() {
  series_.clear();
  const auto add = [&](Series series) {
    if (std::any_of(series.bytes.begin(), series.bytes.end(), [](auto b) { return b != 0; })) {
      series_.push_back(std::move(series));
    }
  };
  if (stacking_ == Stacking::classes) {
    for (const MemoryClass& type : kClasses) {
      Series series{type.name, colourOfMemory(type.name), {}};
      for (const Phase phase : phases_) {
        Bytes bytes;
        for (const RolePlan& role : plan_.roles) {
          if (runs_on(role, rank_)) bytes += use_of(role, phase).*type.member;
        }
        series.bytes.push_back(bytes);
      }
      add(std::move(series));
    }
    return;
  }
  for (const RolePlan& role : plan_.roles) {
    if (!runs_on(role, rank_)) continue;
    Series series{toText(name_of(role.role)), colourOf(role.role), {}};
    for (const Phase phase : phases_) series.bytes.push_back(use_of(role, phase).total());
    add(std::move(series));
  }
}

QStringList MemoryModel::phases() const {
  QStringList names;
  for (const Phase phase : phases_) names << toText(name_of(phase));
  return names;
}

std::int64_t MemoryModel::total(int row) const {
  std::int64_t bytes = 0;
  for (const Series& series : series_) bytes += series.bytes[static_cast<std::size_t>(row)];
  return bytes;
}

int MemoryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(phases_.size());
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
    case Qt::DecorationRole:
      return is_total ? QVariant() : QVariant(series_[column].colour);
    case Qt::ForegroundRole:
      return is_total && bytes > limit() ? QVariant(QColor(Qt::red)) : QVariant();
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant MemoryModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return phases().value(section);
  if (section == static_cast<int>(series_.size())) return QString("total");
  return section >= 0 && section < static_cast<int>(series_.size())
             ? series_[static_cast<std::size_t>(section)].name
             : QVariant();
}

}  // namespace tessera::gui
