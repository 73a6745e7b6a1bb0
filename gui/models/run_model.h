// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a run as metrics.jsonl names them: a table of the main figures, a series per name.
//
// A repeated step (a resumed run) replaces the earlier one and all after it. GUI thread; steps are
// made columns of elsewhere, so that many of them hold it for a moment only.
#pragma once

#include <QAbstractTableModel>
#include <QPointF>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/spec/workload.h"
#include "gui/document/words.h"
#include "gui/metrics/step_columns.h"

namespace tessera::gui {

class RunModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  /// Columns after the step: the first of the names that the run has is shown.
  struct Figure {
    const char* name;  // in English
    std::vector<std::string> names;
    enum class Kind { number, seconds, bytes } kind = Kind::number;
    QString title() const { return Words::tr(name); }
  };
  static const std::vector<Figure>& figures();

  using QAbstractTableModel::QAbstractTableModel;

  void append(StepColumns steps);
  void clear();

  const StepColumns& columns() const { return data_; }
  /// The numbers of the steps, ascending.
  const std::vector<std::int64_t>& steps() const { return data_.steps; }
  /// NaN where the step has no such number.
  double value(const std::string& name, int row) const;
  /// Of the last step that has the number.
  std::optional<double> last(const std::string& name) const;
  /// (step, value) of the steps that have the name.
  std::vector<QPointF> series(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Of all numbers that any step has, sorted.
  std::vector<std::string> names() const;
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
  StepColumns data_;
};

}  // namespace tessera::gui
