// SPDX-License-Identifier: GPL-3.0-or-later
// Choose what to plan, compare the plans, look at one of them.
#pragma once

#include <QLabel>
#include <QPlainTextEdit>
#include <QTableView>
#include <QWidget>

#include "gui/models/session.h"
#include "gui/views/chart.h"
#include "gui/views/mesh_view.h"
#include "gui/views/request_form.h"

namespace tessera::gui {

class ExplorePage : public QWidget {
  Q_OBJECT

 public:
  explicit ExplorePage(Session& session, QWidget* parent = nullptr);

  RequestForm* form() { return form_; }
  MeshView* mesh() { return mesh_; }

 private:
  QWidget* planTable();
  QWidget* memoryPanel();
  void connectSession();
  void showPlan(const Plan& plan);
  void showMemory();
  void showPhases();
  void say(const QString& text, bool bad);

  Session& session_;
  RequestForm* form_;
  QTableView* table_;
  QLabel* message_;
  QWidget* details_;
  MeshView* mesh_;
  Chart *memory_, *phases_;
  QComboBox* stacking_;
  QPlainTextEdit* certificate_;
};

}  // namespace tessera::gui
