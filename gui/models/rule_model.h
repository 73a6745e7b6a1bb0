// SPDX-License-Identifier: GPL-3.0-or-later
// Rules on a run's metrics, judged on its last step: those that are violated first.
//
// The verdicts are those of simulator/rules; what a plan promises the rules compare with. GUI
// thread.
#pragma once

#include <QAbstractTableModel>
#include <optional>
#include <string>
#include <vector>

#include "simulator/rules/rules.h"

namespace tessera::gui {

class RuleModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Outcome, Name, Metric, Value, Limit, Advice, ColumnCount };
  enum Roles { BadRole = Qt::UserRole };  // bool: violated

  /// With the profile `default`.
  explicit RuleModel(QObject* parent = nullptr);

  /// A preset's name or a file; false where it cannot be read, and nothing changes.
  bool setProfile(const QString& name);
  const RuleProfile& profile() const { return profile_; }
  void setExpectation(const Expectation& expectation);
  /// Of the last step; empty = there is none.
  void setValues(const std::map<std::string, double>& values);

  int violated() const;
  /// "2 rules are violated: ..." of the first; empty = none is.
  QString banner() const;
  /// All of them in words.
  QString describe() const;

  struct Line {
    QString name;
    double limit = 0;
    bool violated = false;
  };
  /// The limits of a metric that hold for this run, in the metric's unit.
  std::vector<Line> linesOf(const std::string& metric) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  void judgeAgain();

  RuleProfile profile_;
  Expectation expectation_;
  MetricValues values_;
  std::vector<JudgedRule> rows_;  // of profile_
};

}  // namespace tessera::gui
