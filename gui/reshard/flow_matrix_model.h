// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes of one part of a reshard: a row for each sender, a column for each receiver. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/reshard/reshard_facts.h"

namespace tessera::gui {

class FlowMatrixModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Roles {
    BytesRole = Qt::UserRole,  // qlonglong
    ShareRole,                 // double, of the largest that travels
    StaysRole,                 // bool: sender and receiver are one
  };

  using QAbstractTableModel::QAbstractTableModel;

  /// nullptr = none.
  void setFacts(std::shared_ptr<const ReshardFacts> facts);
  /// Of ReshardFacts::choices().
  void setPart(int part);
  int part() const { return part_; }
  /// Of the part, those that travel, the largest first.
  std::vector<Flow> travelling() const;
  std::int64_t bytes(int from, int to) const;
  bool byNode() const { return facts_ && facts_->by_node; }
  /// "rank 3" or "node 3".
  QString endName(int end) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  const std::vector<Flow>* flows() const;

  std::shared_ptr<const ReshardFacts> facts_;
  int part_ = 0;
  std::int64_t most_ = 0;  // that travels from one end to another
};

}  // namespace tessera::gui
