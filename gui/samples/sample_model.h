// SPDX-License-Identifier: GPL-3.0-or-later
// Samples of a run as a table, in the file's order, and the order and choice in which it is looked
// at. What is kept is bounded: of more than the limits the first leave. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <deque>
#include <string>
#include <vector>

#include "gui/samples/sample.h"
#include "gui/samples/sample_reader.h"

namespace tessera::gui {

class SampleModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns {
    Step,
    Reward,
    Length,
    PromptLength,
    LogProb,
    Ended,
    Prompt,
    Response,
    Truth,
    ColumnCount
  };

  explicit SampleModel(const SampleLimits& limits = {}, QObject* parent = nullptr);

  void append(std::vector<Sample> samples);
  void clear();

  const std::deque<Sample>& samples() const { return samples_; }
  const Sample& sample(int row) const { return samples_[static_cast<std::size_t>(row)]; }
  /// Some left, because more came than are kept.
  bool hasLost() const { return lost_; }
  /// Whether the first row's value of the column is the smaller one; what is unknown is smallest.
  bool isBefore(int first, int second, int column) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  SampleLimits limits_;
  std::deque<Sample> samples_;
  std::size_t bytes_ = 0;  // of their texts
  bool lost_ = false;
};

/// Sorts by a column's values and shows the samples whose texts hold a text.
class SampleOrder : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit SampleOrder(SampleModel* samples, QObject* parent = nullptr);
  /// ASCII letters count as small ones; empty = all.
  void setText(const QString& text);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

 private:
  SampleModel* samples_;
  std::string text_;
};

/// The samples as a table, and for programs; their texts as whole as they are kept. Empty where
/// there are none.
std::string csv_of(const SampleModel& samples);
std::string json_of(const SampleModel& samples);

}  // namespace tessera::gui
