// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes of links, a row each: how full they get, and how full they are at a moment. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <optional>

#include "gui/timeline/link_steps.h"

namespace tessera::gui {

class LinkModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Link, Links, Kind, Rate, Peak, Mean, Busy, Bytes, Then, ColumnCount };
  enum Roles { SortRole = Qt::UserRole };

  using QAbstractTableModel::QAbstractTableModel;

  /// Views of an index, which must outlive the model's use of them.
  void setLinks(LinkSteps steps);
  /// nullopt: nobody points to one, and Then is empty.
  void setMoment(std::optional<double> ns);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant number(std::size_t lane, int column) const;

  LinkSteps steps_;
  std::optional<double> moment_;
};

}  // namespace tessera::gui
