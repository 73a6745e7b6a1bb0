// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/reshard/flow_matrix_model.h"

#include <algorithm>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

// A cell has room for four characters: "1.2G", "340M".
QString shortBytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"", "K", "M", "G", "T"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return QString::number(value, 'f', value < 9.95 && unit > 0 ? 1 : 0) + kUnits[unit];
}

}  // namespace

void FlowMatrixModel::setFacts(std::shared_ptr<const ReshardFacts> facts) {
  beginResetModel();
  facts_ = std::move(facts);
  part_ = 0;
  most_ = 0;
  for (const Flow& flow : travelling()) most_ = std::max(most_, flow.bytes);
  endResetModel();
}

void FlowMatrixModel::setPart(int part) {
  beginResetModel();
  part_ = part;
  most_ = 0;
  for (const Flow& flow : travelling()) most_ = std::max(most_, flow.bytes);
  endResetModel();
}

const std::vector<Flow>* FlowMatrixModel::flows() const {
  if (!facts_) return nullptr;
  const std::vector<const ReshardPart*> choices = facts_->choices();
  if (part_ < 0 || part_ >= static_cast<int>(choices.size())) return nullptr;
  return &choices[static_cast<std::size_t>(part_)]->flows;
}

std::vector<Flow> FlowMatrixModel::travelling() const {
  std::vector<Flow> found;
  if (flows() == nullptr) return found;
  std::copy_if(flows()->begin(), flows()->end(), std::back_inserter(found),
               [](const Flow& flow) { return flow.from != flow.to && flow.bytes > 0; });
  std::stable_sort(found.begin(), found.end(),
                   [](const Flow& a, const Flow& b) { return a.bytes > b.bytes; });
  return found;
}

std::int64_t FlowMatrixModel::bytes(int from, int to) const {
  if (flows() == nullptr) return 0;
  const auto found = std::lower_bound(
      flows()->begin(), flows()->end(), std::pair(from, to),
      [](const Flow& flow, const auto& ends) { return std::pair(flow.from, flow.to) < ends; });
  const bool there = found != flows()->end() && found->from == from && found->to == to;
  return there ? found->bytes : 0;
}

QString FlowMatrixModel::endName(int end) const {
  return (facts_ && facts_->by_node ? Words::tr("node %1") : Words::tr("rank %1")).arg(end);
}

int FlowMatrixModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid() || flows() == nullptr) return 0;
  const int in_one = facts_->by_node ? facts_->ranks_per_node : 1;
  return (facts_->ranks + in_one - 1) / in_one;
}

int FlowMatrixModel::columnCount(const QModelIndex& parent) const { return rowCount(parent); }

QVariant FlowMatrixModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const std::int64_t moved = bytes(index.row(), index.column());
  const bool stays = index.row() == index.column();
  switch (role) {
    case Qt::DisplayRole:
      return moved > 0 ? shortBytes(moved) : QString();
    case Qt::ToolTipRole:
      if (stays && byNode()) {
        return Words::tr("%1 has %2 within it: they stay on their ranks or go to others of it")
            .arg(endName(index.row()), bytesText(moved));
      }
      if (stays) return Words::tr("%1 keeps %2").arg(endName(index.row()), bytesText(moved));
      return Words::tr("%1 sends %2 %3")
          .arg(endName(index.row()), endName(index.column()), bytesText(moved));
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignCenter);
    case BytesRole:
      return static_cast<qlonglong>(moved);
    case ShareRole:
      return most_ > 0 && !stays ? static_cast<double>(moved) / static_cast<double>(most_) : 0.0;
    case StaysRole:
      return stays;
    default:
      return {};
  }
}

QVariant FlowMatrixModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::DisplayRole) return QString::number(section);
  if (role != Qt::ToolTipRole) return {};
  return (orientation == Qt::Vertical ? Words::tr("sent by %1") : Words::tr("received by %1"))
      .arg(endName(section));
}

}  // namespace tessera::gui
