// SPDX-License-Identifier: GPL-3.0-or-later
// Every metric of the run that is followed, by name, with its last value; those that are checked
// are drawn.
//
// What is chosen stays chosen while other runs are looked at. Where nobody has chosen a run begins
// with a few that any training has. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/run_follower.h"

namespace tessera::gui {

class MetricListModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Name, Last, ColumnCount };
  enum Roles { BadRole = Qt::UserRole };  // bool: a rule on it is violated
  static constexpr std::size_t kMostChosen = 8;

  /// `run` outlives it.
  explicit MetricListModel(RunFollower* run, QObject* parent = nullptr);

  /// Those that the run has, in the order in which they were chosen.
  std::vector<std::string> drawn() const;
  /// Of more than kMostChosen the one that was chosen first is drawn no more.
  void choose(const std::string& name, bool chosen);
  /// What the user chose, of whichever runs; nullopt: nothing so far.
  std::optional<std::vector<std::string>> choice() const;
  /// As if the user had chosen these, in this order.
  void setChoice(std::vector<std::string> names);
  const std::string& name(int row) const { return names_[static_cast<std::size_t>(row)]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 signals:
  /// Another choice, or other metrics to choose from.
  void drawnChanged();

 private:
  void follow();
  bool isChosen(const std::string& name) const;
  void chooseFirst();

  RunFollower* run_;
  std::vector<std::string> names_;   // ascending
  std::vector<std::string> chosen_;  // the latest last
  bool touched_ = false;             // by the user
};

/// Every number of every step: a row for each step, a column for each name. Empty without steps.
std::string csv_of(const RunModel& run);

}  // namespace tessera::gui
