// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a run as metrics.jsonl names them: a table of the main figures, a series per name.
//
// A repeated step (a resumed run) replaces the earlier one and all after it.
#pragma once

#include <QAbstractTableModel>
#include <QPointF>
#include <vector>

#include "simulator/timeline/comparison.h"

namespace tessera::gui {

class RunModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  /// Columns after the step: the first of the names that the run has is shown.
  struct Figure {
    QString title;
    std::vector<std::string> names;
    enum class Kind { number, seconds, bytes } kind = Kind::number;
  };
  static const std::vector<Figure>& figures();

  using QAbstractTableModel::QAbstractTableModel;

  void append(const std::vector<StepNumbers>& steps);
  void clear();

  const std::vector<StepNumbers>& steps() const { return steps_; }
  /// (step, value) of the steps that have the name.
  std::vector<QPointF> series(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Phases that took time in some step, in the order of enum Phase.
  std::vector<Phase> phases() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 signals:
  /// After every change.
  void stepsChanged();

 private:
  std::vector<StepNumbers> steps_;
};

}  // namespace tessera::gui
