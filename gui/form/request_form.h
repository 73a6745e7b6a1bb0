// SPDX-License-Identifier: GPL-3.0-or-later
// The question to the planner: model, cluster, workload, size, engine, aim, fixed settings.
//
// Emits queryChanged() a moment after the user's last change, so that typing makes one search, and
// sliderMoved() again and again while a slider is held. What is typed stays as it is typed; whether
// it can be planned the planner says.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QLineEdit>
#include <QSpinBox>
#include <QTimer>
#include <QWidget>
#include <memory>

#include "gui/document/file_kind.h"
#include "gui/document/plan_query.h"
#include "gui/form/batch_fields.h"
#include "gui/form/degree_grid.h"
#include "gui/form/step_slider.h"

namespace tessera::gui {

class RequestForm : public QWidget {
  Q_OBJECT

 public:
  explicit RequestForm(QWidget* parent = nullptr);

  PlanQuery query() const;
  /// Shows a query, and says nothing.
  void setQuery(const PlanQuery& query);
  /// As the user's choice of a file. Precondition: a model, a cluster, a workload or a topology.
  void choose(FileKind kind, const QString& file);
  /// What was changed last has been told.
  bool isSettled() const { return !pause_.isActive(); }
  /// Tells at once what was changed; else it is told when typing rests for a moment.
  void settle();

 signals:
  /// The user changed something: one of the signals below follows.
  void edited();
  /// Of a change by the user.
  void queryChanged(const tessera::gui::PlanQuery& query);
  /// A slider is on its way; queryChanged() follows when it is let go.
  void sliderMoved();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void addTopology(QGridLayout* layout);
  QComboBox* addChoice(QGridLayout* layout, const QString& label, const char* kind,
                       const char* extension, const QString& filter);
  QSpinBox* addCount(QGridLayout* layout, const QString& label);
  QComboBox* addList(QGridLayout* layout, const QString& label);
  void addSettings(QGridLayout* layout);
  void addPrice(QGridLayout* layout);
  void freeAll();
  void showWorkload(const PlanQuery& query);
  void showCluster(const PlanQuery& query);
  bool isSliding() const;
  void changed();
  void tell();

  QComboBox *model_, *cluster_, *workload_, *engine_, *objective_, *placement_;
  QSpinBox *nodes_, *gpus_;
  BatchFields* batch_;
  StepSlider* risk_slider_ = nullptr;
  QDoubleSpinBox *risk_, *price_ = nullptr;
  QLineEdit* topology_ = nullptr;
  QLineEdit* others_;  // settings that have no field of their own
  DegreeGrid* degrees_;
  std::shared_ptr<const Plan> opened_;
  QTimer pause_;
};

}  // namespace tessera::gui
