// SPDX-License-Identifier: GPL-3.0-or-later
// The question to the planner: model, cluster, workload, size, fixed degrees.
//
// Emits queryChanged() a moment after the last change, so that typing makes one search.
#pragma once

#include <QComboBox>
#include <QGridLayout>
#include <QSpinBox>
#include <QTimer>
#include <QWidget>
#include <map>

#include "gui/models/plan_query.h"

namespace tessera::gui {

class RequestForm : public QWidget {
  Q_OBJECT

 public:
  explicit RequestForm(QWidget* parent = nullptr);

  PlanQuery query() const;
  /// Shows a query and emits it.
  void setQuery(const PlanQuery& query);

 signals:
  void queryChanged(const tessera::gui::PlanQuery& query);

 private:
  QComboBox* addChoice(QGridLayout* layout, const QString& label, const char* kind,
                       const char* extension, const QString& filter);
  void addDegrees(QGridLayout* layout);
  void addPlacements(QGridLayout* layout);
  void workloadChanged();
  void clusterChanged();
  void changed();

  QComboBox *model_, *cluster_, *workload_, *placement_;
  QSpinBox *nodes_, *gpus_;
  std::map<std::pair<Role, Field>, QComboBox*> degrees_;
  QTimer pause_;
};

}  // namespace tessera::gui
