// SPDX-License-Identifier: GPL-3.0-or-later
// The degrees of each role that may be fixed, and behind a button what else is fixed often (ZeRO
// stage, context and expert parallelism, tokens of a micro-batch): a box each, whose values that
// cannot be are grey and say why.
//
// A box that has the focus has its values checked (gui/document/setting_checks.h), a moment after
// the last edit; what speaks against a value stands in its tooltip, below the boxes while the value
// is pointed to, and there for all values by `?`. Whatever is typed may be asked. GUI thread.
#pragma once

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QTimer>
#include <QToolButton>
#include <QWidget>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gui/document/setting_checks.h"
#include "planner/request/settings.h"

namespace tessera::gui {

class DegreeGrid : public QWidget {
  Q_OBJECT

 public:
  using Key = std::pair<Role, Field>;
  using Degrees = std::map<Key, QString>;

  explicit DegreeGrid(QWidget* parent = nullptr);

  /// Whether the grid has a box for it.
  bool has(const Key& key) const { return boxes_.contains(key); }
  /// Those that are not empty.
  Degrees degrees() const;
  void setDegrees(const Degrees& degrees);
  /// Those that the workload has; boxes of others are off and empty.
  void setRoles(const std::vector<Role>& roles);
  /// What is asked, beside which values are checked.
  void setQuestion(const PlanQuery& question);
  /// Values are being checked, or are about to be.
  bool isChecking() const { return pause_.isActive() || checks_.isBusy(); }

 signals:
  /// By the user.
  void changed();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void addRoles(QGridLayout* grid, std::span<const Field> fields);
  void showRest(bool shown);
  QComboBox* addBox(const Key& key);
  void look();
  void checked(const QString& name);
  void mark(const Key& key);
  void say(const Key& key, const QString& value);
  void sayAll(const Key& key);
  void tell(const QString& text);
  std::optional<Key> keyOf(const QObject* part) const;

  std::map<Key, QComboBox*> boxes_;
  QToolButton* more_;  // shows the second half
  QWidget* rest_;
  QLabel* why_;
  SettingChecks checks_;
  PlanQuery question_;
  std::optional<Key> looked_at_;
  bool all_ = false;  // what is said is about all values of that box
  QTimer pause_;
};

}  // namespace tessera::gui
