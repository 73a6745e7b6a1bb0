// SPDX-License-Identifier: GPL-3.0-or-later
// The tokens of one sample, a row each, the prompt's first: id, and how likely the rollout drew it.
//
// Log-probabilities are natural ones, as the rollout wrote them; a prompt's tokens have none. GUI
// thread.
#pragma once

#include <QAbstractTableModel>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/samples/sample.h"

namespace tessera::gui {

class TokenModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Part, Token, LogProb, Probability, ColumnCount };
  enum Roles { SortRole = Qt::UserRole };

  using QAbstractTableModel::QAbstractTableModel;

  void setSample(const Sample& sample);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  std::optional<double> logProb(std::size_t row) const;
  QVariant sortKey(std::size_t row, int column) const;

  std::size_t prompt_ = 0;         // tokens of the prompt
  std::vector<std::int32_t> ids_;  // of both
  std::vector<float> log_probs_;   // of the response; empty = unknown
};

}  // namespace tessera::gui
