// SPDX-License-Identifier: GPL-3.0-or-later
// A moment of a rank's memory beside its peak: a row for each class from the top of the picture to
// its bottom, then all together, then what is left of what plans may use. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <vector>

#include "gui/step/memory_steps.h"

namespace tessera::gui {

class MemoryMomentModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Name, Now, AtPeak, ColumnCount };
  enum Roles { BytesRole = Qt::UserRole, BadRole };  // BadRole: more than plans may use

  using QAbstractTableModel::QAbstractTableModel;

  /// Precondition: not empty(), and there is such a sample.
  void setMoment(const MemorySteps& steps, const MemoryLimits& limits, std::size_t sample);
  void clear();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  struct Row {
    QString name;
    QColor colour;  // none of sums
    std::int64_t now = 0, peak = 0;
    bool left = false;  // what is left, which may be less than nothing
    bool operator==(const Row&) const = default;
  };
  void setRows(std::vector<Row> rows);

  std::vector<Row> rows_;
};

}  // namespace tessera::gui
