// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/samples/token_model.h"

#include <cmath>
#include <limits>

#include "gui/document/words.h"

namespace tessera::gui {

void TokenModel::setSample(const Sample& sample) {
  beginResetModel();
  prompt_ = sample.prompt_ids.size();
  ids_ = sample.prompt_ids;
  ids_.insert(ids_.end(), sample.response_ids.begin(), sample.response_ids.end());
  log_probs_ = sample.log_probs;
  endResetModel();
}

int TokenModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(ids_.size());
}

int TokenModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

std::optional<double> TokenModel::logProb(std::size_t row) const {
  if (row < prompt_ || row - prompt_ >= log_probs_.size()) return std::nullopt;
  const float value = log_probs_[row - prompt_];
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

// Likely ones are large; what is unknown is larger, so that the least likely stand first.
QVariant TokenModel::sortKey(std::size_t row, int column) const {
  if (column == Part) return static_cast<qlonglong>(row);
  if (column == Token) return ids_[row];
  return logProb(row).value_or(std::numeric_limits<double>::infinity());
}

QVariant TokenModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto row = static_cast<std::size_t>(index.row());
  if (role == SortRole) return sortKey(row, index.column());
  if (role == Qt::TextAlignmentRole) {
    return QVariant((index.column() == Part ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole) return {};
  if (index.column() == Part) return row < prompt_ ? Words::tr("Prompt") : Words::tr("Response");
  if (index.column() == Token) return ids_[row];
  const std::optional<double> log_prob = logProb(row);
  if (!log_prob) return QString("-");
  return index.column() == LogProb ? QString::number(*log_prob, 'f', 4)
                                   : QString::number(std::exp(*log_prob), 'g', 3);
}

QVariant TokenModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("Words", "Of"), QT_TRANSLATE_NOOP("Words", "Token id"),
      QT_TRANSLATE_NOOP("Words", "Log-probability"), QT_TRANSLATE_NOOP("Words", "Probability")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
